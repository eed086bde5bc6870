# preload.sh KEPT FILE VARIABLE=VALUE…
#
# Has a container's server run with these variables from its next start on. FILE, in memory, is made anew
# at each start, with the content of KEPT.
kept=$1
file=$2
shift 2
PATH=$PATH:$(echo /usr/lib/postgresql/*/bin)
program=$(command -v "$(tr '\0' '\n' </proc/1/cmdline | head -n 1)")
mv "$program" "$program.real"
cat >"$program" <<END
#!/bin/sh
cat $kept >$file
exec env $* "\$0.real" "\$@"
END
chmod 755 "$program"
