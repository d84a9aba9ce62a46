package delivery

import (
	"strings"
	"testing"

	"github.com/google/uuid"

	"market/internal/outage"
)

// Which process it was is for the operator: the notice names it.
func TestVoidReason_NamesNoReplica(t *testing.T) {
	t.Parallel()
	of := uuid.Must(uuid.NewV7())
	for replica, want := range map[uuid.UUID]string{of: "of one of its replicas", {}: "of the marketplace itself"} {
		o := outage.Outage{ID: uuid.Must(uuid.NewV7()), Replica: replica, State: outage.State{Cause: outage.Services}}
		if text := voidReason(o); strings.Contains(text, of.String()) || !strings.Contains(text, want) {
			t.Errorf("%s: want it %q, without an id", text, want)
		}
		if text := noticeText(o, nil); strings.Contains(text, of.String()) != (replica == of) {
			t.Errorf("the notice: %s", text)
		}
	}
}
