package windowtest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"testing"

	"github.com/rs/zerolog"

	"market/internal/app"
	"market/internal/app/apptest"
	"market/internal/config"
)

// servesVariable has the test's own program be a server: what runs is put together as production is, and nothing is built for it.
const servesVariable = "WINDOWTEST_SERVES"

func TestMain(m *testing.M) {
	if os.Getenv(servesVariable) != "" {
		if err := serve(context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// serve is what market serve does.
func serve(ctx context.Context) error {
	ctx, done := signal.NotifyContext(ctx, syscall.SIGTERM)
	defer done()
	c, err := config.Load(os.Environ())
	if err != nil {
		return err
	}
	log := zerolog.New(os.Stderr).With().Timestamp().Logger()
	a, err := app.Start(ctx, c, log.Level(zerolog.WarnLevel))
	if err != nil {
		return err
	}
	log.Info().Str("listening", a.DoorURL()).Str("ops", a.OpsURL()).Msg("serving")
	select {
	case <-ctx.Done():
		return a.Stop(context.WithoutCancel(ctx))
	case failed := <-a.Failed():
		return failed
	}
}

// launch starts a server and returns when its door is open.
func launch(env []string) (*apptest.Process, error) {
	file, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return apptest.Begin(exec.Command(file), append([]string{servesVariable + "=1"}, env...)) //nolint:gosec // this very program
}
