// Command run starts one Postgres server for tests, runs a command with its address in MARKET_TEST_DATABASE_URL, and exits as the
// command did:
//
//	go run ./internal/postgres/pgtest/run go test ./...
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"market/internal/postgres"
	"market/internal/postgres/pgtest"
)

// Exit codes of our own; any other is the command's.
const (
	exitUsage  = 2
	exitServer = 3
)

func main() {
	args := os.Args[1:]
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if len(args) == 0 {
		fmt.Fprintln(os.Stderr, "usage: run [--] command [argument…]")
		os.Exit(exitUsage)
	}
	os.Exit(run(args))
}

func run(args []string) int {
	environment := os.Environ()
	if os.Getenv(pgtest.Variable) == "" {
		server, err := pgtest.StartTemporary(context.Background())
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return exitServer
		}
		defer stop(server)
		environment = append(environment, pgtest.Variable+"="+server.URL())
	}
	// A terminal sends its signals to the command too, and `kill` is passed on: either way the command ends first and we report it.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	cmd := exec.Command(args[0], args[1:]...) //nolint:gosec // running what it is given is its purpose
	cmd.Env = environment
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return exitServer
	}
	go func() {
		for s := range signals {
			if s == syscall.SIGTERM {
				_ = cmd.Process.Signal(s)
			}
		}
	}()
	var failed *exec.ExitError
	switch err := cmd.Wait(); {
	case err == nil:
		return 0
	case errors.As(err, &failed) && failed.Exited():
		return failed.ExitCode()
	default:
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
}

func stop(server *postgres.Server) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := server.Stop(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}
