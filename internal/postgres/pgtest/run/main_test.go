package main

import "testing"

func TestRun_GivesTheCommandAServerAndReportsAsItDid(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		command string
		want    int
	}{
		"success":                    {`true`, 0},
		"a failure":                  {`exit 7`, 7},
		"the address is handed over": {`test -n "$MARKET_TEST_DATABASE_URL" && exit 8`, 8},
		"killed":                     {`kill -9 $$`, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := run([]string{"sh", "-c", c.command}); got != c.want {
				t.Errorf("exit code = %d, want %d", got, c.want)
			}
		})
	}
	if got := run([]string{"/no/such/command"}); got != exitServer {
		t.Errorf("a command that is not there: %d, want %d", got, exitServer)
	}
}
