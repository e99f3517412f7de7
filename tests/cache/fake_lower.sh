#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Stands in for tally-lower where a test needs a compiler that is slow, killed, stuck or silent.
echo "$$ $*" >>"$FAKE_LOG"
case ${FAKE_MODE:-copy} in
copy)
	# Slow: not done before that file is there.
	while [ -n "$FAKE_GATE" ] && [ ! -e "$FAKE_GATE" ]; do sleep 0.01; done
	printf 'code:'
	cat "$1"
	;;
refuse) echo "$1:12:3: error: kernel k: unknown instruction foo" >&2; exit 1 ;;
stuck) sleep 1000 & wait ;; # with a child, as a linker would be
asleep) exec sleep 1000 ;;
killed) kill -KILL $$ ;;
once) if [ -e "$FAKE_LOG.once" ]; then cat "$1"; else : >"$FAKE_LOG.once"; kill -KILL $$; fi ;;
silent) exit 0 ;;
env) ls /proc/self/fd | wc -l; echo "preload=$LD_PRELOAD"; trap ;;
esac
