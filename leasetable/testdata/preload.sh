# preload.sh FILE VARIABLE=VALUE…
#
# Has a container's server run with these variables from its next start on. FILE, in memory, is made anew
# at each start, and then does not set the clock.
file=$1
shift
PATH=$PATH:$(echo /usr/lib/postgresql/*/bin)
program=$(command -v "$(tr '\0' '\n' </proc/1/cmdline | head -n 1)")
mv "$program" "$program.real"
cat >"$program" <<END
#!/bin/sh
echo "not set" >$file
exec env $* "\$0.real" "\$@"
END
chmod 755 "$program"
