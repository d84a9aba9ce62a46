// Command demo is the whole marketplace on one machine, with no account anywhere: its own Postgres, its own chain with a test dollar, two
// sample services, and a caller with a wallet. It makes one paid call that is served and one that fails and is refunded, and prints
// each step with its amounts and hashes. Then it serves until it is stopped.
//
// It holds its own chain and hands out its keys: it is no part of the production binary.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"market/internal/postgres"
)

// onceTime bounds everything but serving.
const onceTime = 2 * time.Minute

func main() {
	once := flag.Bool("once", false, "exit after the two calls; 0 only if one was served and the other refunded, both on the chain")
	asJSON := flag.Bool("json", false, "print one JSON object instead of the story")
	listen := flag.String("listen", "127.0.0.1:4021", "where the marketplace listens; a free port where this one is taken")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Stdout, *listen, *once, *asJSON)
	stop()
	switch {
	case err == nil:
	case errors.Is(err, postgres.ErrNoBinaries):
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(2)
	default:
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, listen string, once, asJSON bool) (err error) {
	starting, cancel := context.WithTimeout(ctx, onceTime)
	defer cancel()
	say := narrator{quiet: asJSON, out: out}
	say.opening()
	w, err := openWorld(starting, listen)
	if w != nil {
		defer func() { err = errors.Join(err, w.close()) }()
	}
	if err != nil {
		return err
	}
	say.world(w)
	story, err := act(starting, w, say)
	if err != nil {
		return err
	}
	if asJSON {
		if err := story.print(out); err != nil {
			return err
		}
	}
	if once {
		return story.check()
	}
	say.tryYourself(w)
	select {
	case <-ctx.Done():
		say.line("")
		say.line("Stopping.")
		return nil
	case failed := <-w.app.Failed():
		return failed
	}
}
