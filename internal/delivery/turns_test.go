package delivery

import (
	"context"
	"testing"

	"github.com/google/uuid"
)

func TestTurns_OneAtATimeForEachService(t *testing.T) {
	t.Parallel()
	var all turns
	one, other := uuid.Must(uuid.NewV7()), uuid.Must(uuid.NewV7())
	end, err := all.take(t.Context(), one)
	if err != nil {
		t.Fatal(err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := all.take(over, one); err == nil {
		t.Error("two have a turn at one service")
	}
	if _, err := all.take(t.Context(), other); err != nil {
		t.Errorf("another service has to wait: %v", err)
	}
	end()
	if _, err := all.take(t.Context(), one); err != nil {
		t.Errorf("the turn did not end: %v", err)
	}
}
