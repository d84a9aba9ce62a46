// Command market is the marketplace: its server, and the client that pays for a call.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"market/internal/postgres"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := newRootCommand().ExecuteContext(ctx)
	stop()
	os.Exit(exitCode(err))
}

func newRootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "market",
		Short:         "A marketplace of HTTP APIs, paid per call over HTTP 402 (x402)",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(newServeCommand(), newFacilitatorCommand(), newCallCommand(), newMigrateCommand(), newAdminCommand(), newProviderCommand(), newVerifyReceiptCommand(), newVersionCommand())
	return root
}

// Exit codes beside those of `market call`.
const (
	exitFailure = 1
	exitMissing = 2 // something has to be installed first
)

// exitCode prints an error, once, and returns what the process ends with.
func exitCode(err error) int {
	if err == nil {
		return 0
	}
	var coded *exitError
	if errors.As(err, &coded) {
		if coded.err != nil {
			fmt.Fprintln(os.Stderr, "market:", coded.err)
		}
		return coded.code
	}
	fmt.Fprintln(os.Stderr, "market:", err)
	if errors.Is(err, postgres.ErrNoBinaries) {
		return exitMissing
	}
	return exitFailure
}
