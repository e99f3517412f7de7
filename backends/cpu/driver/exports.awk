# SPDX-License-Identifier: Apache-2.0
# Makes C from what cuda.h declares: -v mode=stubs, per_thread, table or errors. Plain POSIX awk.
#   awk -v mode=MODE -f exports.awk PREPROCESSED_CUDA_H cudaTypedefs.h...
# The first file is preprocessed with __CUDA_API_VERSION_INTERNAL, which makes cuda.h declare every
# name that libcuda.so.1 exports, all versions and per-thread variants, as they are.

BEGIN { RS = ";" }

# CUresult cuName(parameters)
FNR == NR && match($0, /CUresult[ \t\n]+cu[A-Z][A-Za-z0-9_]* *\(/) && !/typedef/ {
	text = substr($0, RSTART, RLENGTH)
	rest = substr($0, RSTART + RLENGTH)
	gsub(/CUresult[ \t\n]+| *\(/, "", text)
	sub(/\)[^)]*$/, "", rest)
	gsub(/[ \t\n]+/, " ", rest)
	if (!(text in parameters))
		order[++count] = text
	parameters[text] = rest
}

# CUDA_ERROR_NAME = 1,
FNR == NR && mode == "errors" && /CUDA_SUCCESS *= *0/ {
	n = split($0, line, ",")
	for (i = 1; i <= n; i++)
		if (match(line[i], /CUDA_[A-Z0-9_]+ *= *[0-9]+/)) {
			split(substr(line[i], RSTART, RLENGTH), pair, / *= */)
			error[++errors] = pair[1]
		}
}

# typedef CUresult (CUDAAPI *PFN_cuName_v3020_ptds)(
FNR != NR && match($0, /PFN_cu[A-Za-z0-9_]+_v[0-9]+(_ptds|_ptsz)?\)/) {
	text = substr($0, RSTART + 4, RLENGTH - 5)
	variant = ""
	if (match(text, /_pt[ds][sz]$/)) {
		variant = substr(text, RSTART)
		text = substr(text, 1, RSTART - 1)
	}
	match(text, /_v[0-9]+$/)
	version = substr(text, RSTART + 2) + 0
	text = substr(text, 1, RSTART - 1)
	if (!((text, variant, version) in seen)) {
		seen[text, variant, version] = 1
		versions[text, variant] = versions[text, variant] " " version
		bases[text] = 1
	}
}

# The names of the arguments, for a call.
function arguments(list,    n, part, i, result) {
	if (list == "void" || list == "")
		return ""
	n = split(list, part, ",")
	for (i = 1; i <= n; i++) {
		sub(/ *(\[[^]]*\])? *$/, "", part[i])
		match(part[i], /[A-Za-z0-9_]+$/)
		result = result (i > 1 ? ", " : "") substr(part[i], RSTART)
	}
	return result
}

function head(what) {
	print "/* SPDX-License-Identifier: Apache-2.0 */"
	print "/* " what " Made by exports.awk. */"
	print "#include \"backends/cpu/driver/exports.h\"\n"
}

# Everything that may be linked against, weak: what the driver implements takes its place.
function stubs(    i, name) {
	head("Answers for what the CPU device does not do.")
	for (i = 1; i <= count; i++) {
		name = order[i]
		if (name ~ /_pt[ds][sz]$/)
			continue
		print "__attribute__((weak)) CUresult " name "(" parameters[name] ")\n{"
		print "\tstatic atomic_bool said;\n"
		print "\treturn driver_unsupported(\"" name "\", &said);\n}\n"
	}
}

# cuX_ptsz is cuX with the null stream meaning the calling thread's own.
function per_thread(    i, name, base) {
	head("The variants of programs built with --default-stream per-thread.")
	for (i = 1; i <= count; i++) {
		name = order[i]
		if (name !~ /_pt[ds][sz]$/)
			continue
		base = substr(name, 1, length(name) - 5)
		print "CUresult " name "(" parameters[name] ")\n{"
		print "\tdriver_thread.null_is_own = true;"
		print "\tCUresult result = " base "(" arguments(parameters[name]) ");"
		print "\tdriver_thread.null_is_own = false;\n\treturn result;\n}\n"
	}
}

# Versions of one name in ascending order belong to cuX, cuX_v2, cuX_v3 in this order; where the
# typedefs have left out the oldest ones, the newest belongs to the last.
function table_of(base, variant,    n, list, i, j, swap, symbol, last) {
	n = split(versions[base, variant], list, " ")
	for (i = 2; i <= n; i++)
		for (j = i; j > 1 && list[j] + 0 < list[j - 1] + 0; j--) {
			swap = list[j]; list[j] = list[j - 1]; list[j - 1] = swap
		}
	for (last = n; (base "_v" (last + 1) variant) in parameters; last++)
		;
	for (i = 1; i <= n; i++) {
		j = last - n + i
		symbol = base (j > 1 ? "_v" j : "") variant
		if (!(symbol in parameters))
			continue
		row(base, list[i], symbol, variant)
	}
}

function row(name, version, symbol, variant) {
	printf "\t{\"%s\", %d, (void (*)(void))%s, %s},\n", name, version, symbol,
	       variant == "" ? "false" : "true"
}

function table(    i, base) {
	head("What cuGetProcAddress finds: name, version it came with, function, per-thread.")
	print "const struct driver_entry driver_entries[] = {"
	for (base in bases) {
		table_of(base, "")
		table_of(base, "_ptds")
		table_of(base, "_ptsz")
	}
	# The rest, and every name as it is exported.
	for (i = 1; i <= count; i++)
		if (!(order[i] in bases))
			row(order[i], 2000, order[i], "")
	print "\t{NULL, 0, NULL, false},\n};"
}

function error_table(    i, text) {
	head("Names of all results, and what they say in plain words.")
	print "const struct driver_error driver_errors[] = {"
	for (i = 1; i <= errors; i++) {
		text = error[i]
		sub(/^CUDA_(ERROR_)?/, "", text)
		gsub(/_/, " ", text)
		print "\t{" error[i] ", \"" error[i] "\", \"" tolower(text) "\"},"
	}
	print "\t{CUDA_SUCCESS, NULL, NULL},\n};"
}

END {
	if (mode == "stubs")
		stubs()
	else if (mode == "per_thread")
		per_thread()
	else if (mode == "table")
		table()
	else
		error_table()
}
