package server

import (
	"crypto/sha256"
	"encoding/json"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"market/internal/call"
	"market/internal/delivery"
	"market/internal/strikes"
)

// testStrike is one strike of one paid call from 203.0.113.7, and what it comes to.
func testStrike(id uuid.UUID, at time.Time) (strikes.Strike, strikes.Summary) {
	network, digest := netip.MustParsePrefix("203.0.113.0/24"), sha256.Sum256([]byte("oops"))
	spread := strikes.Spread{Evidence: 1, First: at, Last: at, Sources: 1, LargestSource: network, FromLargest: 1, Addresses: 1, Payers: 1,
		LargestPayer: testPayer, ByLargest: 1}
	strike := strikes.Strike{ID: id, State: "open", Counts: true, OpenedAt: at, FoldsUntil: at, LastEvidenceAt: at, Spread: spread, Calls: []call.ID{id},
		Evidence: []strikes.Evidence{{Strike: id, Call: id, AskedAt: at, RecordedAt: at, Replica: id, Source: netip.MustParseAddr("203.0.113.7"),
			Network: network, Origin: call.External, Payer: testPayer, Method: "GET", Path: "/", Status: 500, Reason: call.Upstream5xx, Detail: "the service failed",
			Error: "http: status 500", Said: call.Said{ContentType: "text/plain", Snippet: "oops", SHA256: digest[:], Bytes: 4},
			Others: &strikes.Others{Asked: 2, Failed: 1}}}}
	policy := strikes.Policy{Limit: 3, Window: 24 * time.Hour}
	return strike, policy.Summarize(strikes.Facts{Slug: "weather", Name: "Weather", State: "listed", Sells: true, Open: 1, Spread: spread,
		Clears: strikes.Clears{Times: 1, Trials: 1, Sources: 1, Addresses: 1, Last: at}})
}

func TestStrikeView_AProviderSeesNetworksAndNoneOfOurProcesses(t *testing.T) {
	t.Parallel()
	id := uuid.Must(uuid.NewV7())
	strike, _ := testStrike(call.NewID(), time.Now())
	strike.Evidence[0].Replica = id
	for whole, want := range map[bool]bool{true: true, false: false} {
		text, err := json.Marshal(strikeViewOf("weather", strike, whole))
		if err != nil {
			t.Fatal(err)
		}
		for _, secret := range []string{"203.0.113.7", id.String()} {
			if got := strings.Contains(string(text), secret); got != want {
				t.Errorf("for an admin %v: %s is shown %v: %s", whole, secret, got, text)
			}
		}
		if !strings.Contains(string(text), testPayer.Hex()) {
			t.Errorf("for an admin %v: the payer is missing: %s", whole, text)
		}
	}
}

func TestOffset_IsReadAsItWasWrittenAndNothingElse(t *testing.T) {
	t.Parallel()
	for _, offset := range []int{1, 20, 1<<20 - 1} {
		if got, ok := readOffset(writeOffset(offset)); got != offset || !ok {
			t.Errorf("offset %d is read as %d, %v", offset, got, ok)
		}
	}
	for _, cursor := range []string{writeOffset(0), writeOffset(-1), writeOffset(1 << 20), "20", "cTo", "!", "czI6MjA"} {
		if got, ok := readOffset(cursor); ok {
			t.Errorf("%q is read as %d", cursor, got)
		}
	}
	if got, ok := readOffset(""); got != 0 || !ok {
		t.Errorf("no cursor is read as %d, %v", got, ok)
	}
}

// A page has the newest strikes of a service; how many more count is said beside them.
func TestStrikePage_SaysHowManyStrikesOfAServiceItLeavesOut(t *testing.T) {
	t.Parallel()
	many, few := uuid.Must(uuid.NewV7()), uuid.Must(uuid.NewV7())
	queue := delivery.StrikeQueue{Services: []strikes.Summary{{Facts: strikes.Facts{Service: many, Slug: "many", Open: 60}},
		{Facts: strikes.Facts{Service: few, Slug: "few", Open: 1}}}, Total: 2}
	for range 50 {
		queue.Strikes = append(queue.Strikes, strikes.Strike{Service: many, State: "open", Counts: true})
	}
	queue.Strikes = append(queue.Strikes, strikes.Strike{Service: few, State: "open", Counts: true})
	page := strikePageOf(queue, 0)
	if len(page.Items) != 51 || page.Items[49].Service != "many" || page.Items[50].Service != "few" || page.Services[0].LeftOut != 10 || page.Services[1].LeftOut != 0 {
		t.Errorf("%d items, left out %d and %d, want 51, 10 and 0", len(page.Items), page.Services[0].LeftOut, page.Services[1].LeftOut)
	}
	if one := summaryViewOf(queue.Services[1], []strikes.Strike{{State: "voided"}}); one.LeftOut != 1 {
		t.Errorf("one that counts beside one that does not: %d are left out, want 1", one.LeftOut)
	}
}
