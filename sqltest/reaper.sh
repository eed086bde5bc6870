#!/bin/sh
# Ends a test server when nobody uses it any more, and removes its folder.
#
#   reaper.sh FOLDER watch   waits until every process in FOLDER/users is gone
#   reaper.sh FOLDER once    ends the server if that is so now
#   reaper.sh FOLDER now     ends the server
#
# It runs beside the tests, in a session of its own, so that it survives when they are killed.
dir=$1
mode=$2

in_use() {
	for user in "$dir"/users/*; do
		case ${user##*/} in
		'*') return 1 ;;
		keep) return 0 ;;
		esac
		kill -0 "${user##*/}" 2>/dev/null && [ -n "$(args_of "${user##*/}")" ] && return 0
		rm -f "$user"
	done
	return 1
}

# The command line of a process: empty if it is gone, or dead and not yet collected by its parent.
args_of() {
	if [ -d /proc/self ]; then
		tr '\0' ' ' 2>/dev/null <"/proc/$1/cmdline"
	else
		ps -o args= -p "$1"
	fi 2>/dev/null
}

# The process id may have been reused.
is_ours() {
	case $(args_of "$1") in *"$dir"*) return 0 ;; esac
	return 1
}

children_of() {
	cat "/proc/$1/task/$1/children" 2>/dev/null ||
		ps -A -o pid= -o ppid= | awk -v parent="$1" '$2 == parent { print $1 }'
}

end_program() {
	pid=$(cat "$dir/pid" 2>/dev/null)
	[ -n "$pid" ] || return
	if is_ours "$pid"; then
		children=$(children_of "$pid")
		kill -s "$(cat "$dir/signal")" "$pid"
		# A paused server must run to receive the signal.
		# shellcheck disable=SC2086 # several
		kill -s CONT "$pid" $children
		turns=0
		while is_ours "$pid" && [ $turns -lt 100 ]; do
			sleep 0.05
			turns=$((turns + 1))
		done
		is_ours "$pid" && kill -s KILL "$pid"
		kill -s KILL -- "-$pid"
	fi 2>/dev/null
	# A killed PostgreSQL leaves its shared memory, which its pid file names.
	segment=$(sed -n '7s/.* //p' "$dir/data/postmaster.pid" 2>/dev/null)
	[ -z "$segment" ] || ipcrm -m "$segment" 2>/dev/null
}

end_container() {
	name=$(cat "$dir/container" 2>/dev/null)
	[ -n "$name" ] || return
	[ ! -s "$dir/docker-host" ] || DOCKER_HOST=$(cat "$dir/docker-host") && export DOCKER_HOST
	command -v docker >/dev/null || return
	# A server without a record had not started. Docker may still be creating its container for a process that was killed.
	last=$(($(date +%s) + 10))
	while
		case $(docker rm -f -v "$name" 2>&1) in
		"$name") return ;;
		*"o such container"*) [ ! -s "$dir/server.ended" ] || return ;;
		esac
		[ "$mode" != now ] && [ "$(date +%s)" -lt $last ]
	do
		sleep 0.1
	done
}

while [ "$mode" != now ]; do
	[ -d "$dir" ] || exit 0
	if in_use; then
		[ "$mode" = watch ] || exit 0
		sleep 1 # each check starts a process, and every server has a watcher
		continue
	fi
	# Without its record no process can adopt the server. A process that adopted it just before has registered, and gets
	# the record back.
	mv "$dir/server.json" "$dir/server.ended" 2>/dev/null
	in_use || break
	mv "$dir/server.ended" "$dir/server.json" 2>/dev/null
done
touch "$dir/server.ended" 2>/dev/null # a program about to start sees this and exits

end_program
end_container
rm -rf "$dir" || rm -rf "$dir" # another process may have written into it meanwhile
