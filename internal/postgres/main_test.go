package postgres

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/jackc/pgx/v5"
)

// childDir tells a process of this test program that it is not here to test: it starts a server in that directory, commits a row, says
// so, and waits to be killed.
const childDir = "MARKET_EMBEDDED_CHILD_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		if err := runChild(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

func runChild(dir string) error {
	ctx := context.Background()
	s, err := StartEmbedded(ctx, Embedded{Dir: dir})
	if err != nil {
		return err
	}
	conn, err := pgx.Connect(ctx, s.URL())
	if err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, `CREATE TABLE kept AS SELECT 7 AS n`); err != nil {
		return err
	}
	fmt.Println("committed")
	<-s.Done()
	return nil
}
