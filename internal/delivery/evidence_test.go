package delivery

import (
	"crypto/sha256"
	"net/netip"
	"reflect"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"market/internal/call"
	"market/internal/catalog"
	"market/internal/postgres/pgtest"
	"market/internal/strikes"
	"market/internal/upstream"
)

// beside lists another service in the same market.
func (s shelf) beside(t *testing.T, slug string) shelf {
	t.Helper()
	draft, err := catalog.ParseDraft([]byte(`{"slug":"`+slug+`","name":"Other","base_url":"https://`+slug+`.example",
		"probe":{"path":"/healthz","statuses":["200"]},"endpoints":[{"method":"GET","path":"/","price_usd":"0.01","trial_calls_per_day":3}]}`), catalog.Rules{})
	if err != nil {
		t.Fatal(err)
	}
	err = pgx.BeginFunc(t.Context(), s.db, func(tx pgx.Tx) (err error) {
		s.service, err = catalog.Store{}.Create(t.Context(), tx, draft)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	s.endpoint = s.service.Endpoints[0]
	return s
}

// called returns the delivery as one of a caller at an address.
func (d Delivery) called(from string) Delivery { d.Source = netip.MustParseAddr(from); return d }

func (s shelf) strikes(t *testing.T) ServiceStrikes {
	t.Helper()
	found, err := s.recorder.StrikesOf(t.Context(), s.service.ID)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestRecorder_Record_AStrikeKeepsEverythingThatItIsJudgedBy(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	digest := sha256.Sum256([]byte("oops"))
	paid := s.asked(t).by(7).called("203.0.113.7").after(84200 * time.Microsecond).failed()
	paid.Status, paid.Replica, paid.Error, paid.Path = 500, s.owner, "http: status 500", "/v1/price"
	paid.Said = call.Said{ContentType: "text/plain", Snippet: "oops", SHA256: digest[:], Bytes: 4, Cut: true}
	trial := s.trial(t).called("2001:db8:7::1").from(call.Unattributed).end(call.UpstreamUnreachable, "the service refused the connection")
	trial.Error = "connect: refused"
	s.record(t, paid)
	pgtest.Shift(t, s.db, time.Second)
	s.record(t, trial)

	found := s.strikes(t)
	if len(found.Strikes) != 1 || len(found.Strikes[0].Evidence) != 2 {
		t.Fatalf("%+v, want one strike with two deliveries", found.Strikes)
	}
	strike := found.Strikes[0]
	for i, want := range []strikes.Evidence{
		{Strike: strike.ID, Call: paid.Call, AskedAt: s.opened, RecordedAt: s.opened, Replica: s.owner, Source: paid.Source,
			Network: netip.MustParsePrefix("203.0.113.0/24"), Origin: call.External, Payer: common.Address{7}, Method: "GET", Path: "/v1/price", Status: 500,
			Latency: 84200 * time.Microsecond, Reason: call.Upstream5xx, Detail: "status 500", Error: "http: status 500", Said: paid.Said, Others: &strikes.Others{}},
		{Strike: strike.ID, Call: trial.Call, Trial: true, AskedAt: s.opened, RecordedAt: s.opened.Add(time.Second), Source: trial.Source,
			Network: netip.MustParsePrefix("2001:db8:7::/48"), Origin: call.Unattributed, Method: "GET", Path: "/", Reason: call.UpstreamUnreachable,
			Detail: trial.Detail, Error: "connect: refused", Others: &strikes.Others{}},
	} {
		got := strike.Evidence[i]
		got.AskedAt, got.RecordedAt = got.AskedAt.UTC(), got.RecordedAt.UTC()
		if !reflect.DeepEqual(got, want) {
			t.Errorf("evidence\n%+v, want\n%+v", got, want)
		}
	}
	want := strikes.Spread{Evidence: 2, Trials: 1, First: s.opened, Last: s.opened.Add(time.Second), Sources: 2, LargestSource: netip.MustParsePrefix("203.0.113.0/24"),
		FromLargest: 1, Addresses: 1, Payers: 1, LargestPayer: common.Address{7}, ByLargest: 1}
	if strike.Spread != want || found.Summary.Spread != want || !strike.Counts || strike.State != "open" || found.Summary.Open != 1 {
		t.Errorf("%+v and %+v\nwant %+v", strike, found.Summary, want)
	}
}

func TestRecorder_Record_EveryDeliverySaysWhichProcessWalkedIt(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	served, trial, refused, swept := s.asked(t).served(), s.trial(t).served(), s.refusal(call.InputInvalid, "192.0.2.7"), s.asked(t).served()
	served.Replica, trial.Replica, refused.Replica = s.owner, s.owner, s.owner
	s.record(t, served)
	s.record(t, trial)
	s.refuse(t, refused)
	s.record(t, swept)
	for what, d := range map[string]Delivery{"served": served, "a trial": trial, "refused": refused, "of nobody": swept} {
		var got *uuid.UUID
		if err := s.db.QueryRow(t.Context(), `SELECT replica FROM deliveries WHERE id = $1`, d.ID).Scan(&got); err != nil {
			t.Fatal(err)
		}
		if want := d.replica(); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: replica %v, want %v", what, got, want)
		}
	}
	if d := (&Path{Config: Config{Upstream: upstream.New(upstream.Options{})}, owner: s.owner}).newDelivery(call.NewID(), Request{Target: catalog.Target{Service: &s.service, Endpoint: s.endpoint}}); d.Replica != s.owner {
		t.Errorf("a call that is walked here has the replica %s, want %s", d.Replica, s.owner)
	}
}

func TestRecorder_Record_EvidenceSaysHowOthersFaredInTheMinuteBefore(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		end    func(d Delivery) Delivery
		passed time.Duration // since then
		want   strikes.Others
	}{
		"served":                                    {Delivery.served, 0, strikes.Others{Asked: 1}},
		"failed":                                    {Delivery.failed, 0, strikes.Others{Asked: 1, Failed: 1}},
		"failed for a reason of ours":               {func(d Delivery) Delivery { return d.end(call.EgressDown, "no route") }, 0, strikes.Others{Asked: 1, Failed: 1}},
		"refused its caller":                        {func(d Delivery) Delivery { return d.end(call.RejectedByService, "") }, 0, strikes.Others{Asked: 1}},
		"failed for its caller":                     {func(d Delivery) Delivery { return d.end(call.CallerStalled, "") }, 0, strikes.Others{Asked: 1}},
		"failed for a call of the market's own":     {func(d Delivery) Delivery { return d.failed().from(call.Own) }, 0, strikes.Others{}},
		"failed for a call of its provider":         {func(d Delivery) Delivery { return d.failed().from(call.Provider) }, 0, strikes.Others{}},
		"failed for one that cannot be attributed":  {func(d Delivery) Delivery { return d.failed().from(call.Unattributed) }, 0, strikes.Others{Asked: 1, Failed: 1}},
		"failed just inside the minute":             {Delivery.failed, time.Minute - time.Microsecond, strikes.Others{Asked: 1, Failed: 1}},
		"failed a minute before":                    {Delivery.failed, time.Minute, strikes.Others{}},
		"failed just outside the minute":            {Delivery.failed, time.Minute + time.Microsecond, strikes.Others{}},
		"failed once and served once are one other": {nil, 0, strikes.Others{Asked: 1, Failed: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShelf(t)
			other := s.beside(t, "other")
			if tt.end == nil {
				other.record(t, other.trial(t).failed())
				other.record(t, other.trial(t).served())
			} else {
				other.record(t, tt.end(other.trial(t)))
			}
			pgtest.Shift(t, s.db, tt.passed)
			s.record(t, s.trial(t).served()) // its own, which is no other's
			s.fail(t)
			got := s.strikes(t).Strikes[0].Evidence[0].Others
			if got == nil || *got != tt.want {
				t.Errorf("others %+v, want %+v", got, tt.want)
			}
		})
	}
}

// The way in which one statement is planned is no business of those after it.
func TestOthersOf_LeavesTheRestOfTheTransactionAsItWas(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	const waysSQL = `SELECT array_agg(name || ' ' || setting ORDER BY name) FROM pg_settings WHERE name LIKE 'enable%'`
	var before, after []string
	err := pgx.BeginFunc(t.Context(), s.db, func(tx pgx.Tx) error {
		if err := tx.QueryRow(t.Context(), waysSQL).Scan(&before); err != nil {
			return err
		}
		if _, err := othersOf(t.Context(), tx, s.service.ID); err != nil {
			return err
		}
		return tx.QueryRow(t.Context(), waysSQL).Scan(&after)
	})
	if err != nil || len(before) == 0 || !reflect.DeepEqual(after, before) {
		t.Errorf("%v, after it %v (%v)", before, after, err)
	}
}

// An older program that still runs adds evidence without all this.
func TestRecorder_StrikesOf_ReadsTheEvidenceOfAnOlderProgram(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	d := s.fail(t)
	s.rewrite(t, "strike_deliveries", `DELETE FROM strike_deliveries WHERE delivery_id = $1`, d.ID)
	s.write(t, `INSERT INTO strike_deliveries (strike_id, delivery_id) SELECT id, $1 FROM strikes`, d.ID)
	found := s.strikes(t)
	if len(found.Strikes) != 1 || len(found.Strikes[0].Evidence) != 1 {
		t.Fatalf("%+v", found.Strikes)
	}
	if e := found.Strikes[0].Evidence[0]; e.Call != d.Call || e.Others != nil || e.Replica != (uuid.UUID{}) || e.Said.Bytes != 0 {
		t.Errorf("%+v", e)
	}
}

func TestNetworkSQL_IsNetworkOfPackageCall(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	for _, address := range []string{"0.0.0.0", "192.0.2.1", "192.0.2.255", "203.0.113.7", "2001:db8::1", "2001:db8:0:1::1", "2001:db8:1::1", "::1"} {
		source := netip.MustParseAddr(address)
		var got netip.Prefix
		if err := s.db.QueryRow(t.Context(), `SELECT `+networkSQL+` FROM (SELECT $1::inet AS source) d`, source).Scan(&got); err != nil {
			t.Fatal(err)
		}
		if want := call.Network(source); got != want {
			t.Errorf("%s: %s in SQL, %s in Go", address, got, want)
		}
	}
}
