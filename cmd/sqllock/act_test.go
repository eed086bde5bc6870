package main

import (
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"
)

// act is a command for sqllock to run, played by the test program: it prints each signal that it gets, and exits with a
// code after the given number of signals.
func act(args []string) int {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2)
	code, _ := strconv.Atoi(args[0])
	count, _ := strconv.Atoi(args[1])
	_, _ = fmt.Fprintln(os.Stdout, "ready")
	for range count {
		_, _ = fmt.Fprintln(os.Stdout, <-signals)
	}
	return code
}
