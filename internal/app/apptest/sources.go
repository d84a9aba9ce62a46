package apptest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"market/internal/devnet"
)

// Sources returns the setting of a file with our own engine, which settles everything, and after it n remote facilitators that nobody answers for, prepaid
// and with a guard: facilitator/hosted-1 and so on.
func Sources(t testing.TB, n int) string {
	t.Helper()
	all := []map[string]any{{"name": "own", "kind": "local", "networks": []string{devnet.NetworkID}, "proof": "receipt"}}
	for i := range n {
		all = append(all, map[string]any{"name": fmt.Sprintf("hosted-%d", i+1), "kind": "remote", "url": "http://127.0.0.1:9", "networks": []string{devnet.NetworkID}, "proof": "receipt",
			"metered": true, "runs_out": "prepaid", "unit_usd": "0.001", "budget_url": "https://facilitator.example/billing?team=7", "guard": map[string]any{"floor": 15_000, "surge": 3}})
	}
	text, err := json.Marshal(map[string]any{"facilitators": all})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "facilitators.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return "MARKET_FACILITATORS=" + file
}

// SourcesSQL has of the sources of Sources the first one out of credit for three days, the second one stopped by our guard, the third one both, the fourth
// one with a credential that is refused, the fifth one asked to wait, and all others quiet. They may have been asked already whether they are there.
const SourcesSQL = `
WITH numbered AS (SELECT n, 'facilitator/hosted-' || n AS source FROM generate_series(1, $1) n), days AS (
	INSERT INTO source_days (source, day, used, denied, guarded)
	SELECT source, (market_now() AT TIME ZONE 'UTC')::date - back, CASE WHEN back > 0 THEN 4000 + 100 * n + back WHEN n IN (2, 3) THEN 15000 ELSE 300 * n END,
	       CASE WHEN back = 0 AND n < 4 THEN 700 * n ELSE 0 END, CASE WHEN back = 0 AND n IN (2, 3) THEN 15000 END
	  FROM numbered, generate_series(0, 7) back
	ON CONFLICT (source, day) DO UPDATE SET used = excluded.used, denied = excluded.denied, guarded = excluded.guarded
)
INSERT INTO source_state (source, exhausted_at, retry_at, why, said, next_request_at, out_since, refused_at, last_success_at, guard_reached_at, guard_cap)
SELECT source, CASE WHEN n IN (1, 3, 4) THEN market_now() - interval '40 minutes' END, CASE WHEN n IN (1, 3, 4) THEN market_now() + interval '20 minutes' END,
       CASE WHEN n IN (1, 3) THEN 'exhausted' WHEN n = 4 THEN 'denied' END, CASE WHEN n IN (1, 3) THEN 'HTTP 402' WHEN n = 4 THEN 'HTTP 401' END,
       CASE WHEN n = 5 THEN market_now() + interval '50 seconds' END, CASE WHEN n IN (1, 3, 4) THEN market_now() - interval '3 days' END,
       CASE WHEN n IN (1, 3, 4) THEN market_now() - interval '40 minutes' END, market_now() - n * interval '7 minutes',
       CASE WHEN n IN (2, 3) THEN market_now() - interval '30 minutes' END, CASE WHEN n IN (2, 3) THEN 15000 END
  FROM numbered
ON CONFLICT (source) DO UPDATE
   SET exhausted_at = excluded.exhausted_at, retry_at = excluded.retry_at, why = excluded.why, said = excluded.said, next_request_at = excluded.next_request_at,
       out_since = excluded.out_since, refused_at = excluded.refused_at, last_success_at = excluded.last_success_at,
       guard_reached_at = excluded.guard_reached_at, guard_cap = excluded.guard_cap`
