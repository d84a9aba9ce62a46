package server

import (
	"testing"
	"time"

	"market/internal/identity"
)

func TestLiveKeys_AreThoseThatAreNeitherRevokedNorOver(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	keys := []identity.APIKey{{}, {ExpiresAt: now.Add(1)}, {ExpiresAt: now}, {RevokedAt: now.Add(-1)}}
	if n := liveKeys(keys, now); n != 2 {
		t.Errorf("%d are good, want 2", n)
	}
}
