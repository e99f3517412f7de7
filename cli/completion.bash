# SPDX-License-Identifier: Apache-2.0
# bash completion of `tally`: commands and options as its own --help names them.
_tally() {
	local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} command=${COMP_WORDS[1]} i
	COMPREPLY=()
	if [ "$COMP_CWORD" -eq 1 ]; then
		COMPREPLY=($(compgen -W "$("${COMP_WORDS[0]}" --help 2>/dev/null |
			sed -n '/^commands:/,/^$/s/^  \([a-z]*\) .*/\1/p') --help --version" -- "$word"))
		return
	fi
	# Behind run's and trace's options stands another program's command line.
	for ((i = 2; i < COMP_CWORD; i++)); do
		if [ "${COMP_WORDS[i]}" = -- ] && [[ $command == run || $command == trace ]]; then
			declare -F _command_offset >/dev/null && _command_offset $((i + 1))
			return
		fi
	done
	case $command:$before in
	run:--priority) COMPREPLY=($(compgen -W "high best-effort" -- "$word")) ;;
	run:--mps) COMPREPLY=($(compgen -W "auto on off" -- "$word")) ;;
	run:--opaque) COMPREPLY=($(compgen -W "off open all" -- "$word")) ;;
	run:--device) COMPREPLY=($(compgen -W "auto cpu cuda" -- "$word")) ;;
	trace:-o | trace:--output) COMPREPLY=($(compgen -f -- "$word")) ;;
	profile:--sort) COMPREPLY=($(compgen -W "time launches stop name" -- "$word")) ;;
	top:-s | top:--sort) COMPREPLY=($(compgen -W "priority time launches stops name" -- "$word")) ;;
	cache:cache) COMPREPLY=($(compgen -W "status clear --help --version" -- "$word")) ;;
	*)
		COMPREPLY=($(compgen -W "$("${COMP_WORDS[0]}" "$command" --help 2>/dev/null |
			grep -oE -- '(^|[ ,])--[a-z][a-z-]+' | tr -d ' ,' | sort -u)" -- "$word"))
		[ ${#COMPREPLY[@]} -gt 0 ] || [[ $word == -* ]] || COMPREPLY=($(compgen -c -- "$word"))
		;;
	esac
}
complete -o filenames -F _tally tally
