package delivery

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"market/internal/notify"
	"market/internal/postgres"
)

const (
	trafficWindow = time.Hour
	// trafficMax is how many deliveries of each kind are read; where there were more, what is counted are the newest of the window.
	trafficMax = 10_000
	// ownMin is how many deliveries there have to be so that a share of them says anything.
	ownMin = 50
	// unattributedMin is the same of calls that cannot be attributed.
	unattributedMin = 10
)

// Provenance is where the deliveries of the last hour came from, of calls that reached a service.
type Provenance struct {
	At           time.Time // market time
	Since        time.Time // from when on is counted: an hour before, or less where there was more than is read
	Own          int
	Provider     int
	Outside      int        // external and unattributed
	Unattributed int        // of Outside
	Peer         netip.Addr // that most of the unattributed came from
}

// mostlyOwn says whether over 90 % are our own, of enough to say so.
func (t Provenance) mostlyOwn() bool {
	all := t.Own + t.Provider + t.Outside
	return all >= ownMin && 10*t.Own > 9*all
}

// unattributable says whether so many calls from outside cannot be attributed that a proxy may be behind it. A header costs nothing, so a few are no
// news; a caller who pays for more, or has trials for more, can still feign a proxy.
func (t Provenance) unattributable() bool {
	return t.Unattributed >= unattributedMin && 10*t.Unattributed >= t.Outside
}

// A TrafficNotice is what the operator is to be told of where traffic comes from: that it is so, or that it is so no longer.
type TrafficNotice struct {
	Kind notify.Kind
	Over bool
	Text string

	trouble notify.Outage // what is raised; none where it is over
}

// notices returns what changes for the operator, given the notices that are open and since when. A notice stays for as long as it looks back, so that
// what goes up and down around its bound is told once an hour at most.
func (t Provenance) notices(open []notify.Notice) []TrafficNotice {
	var changed []TrafficNotice
	for _, is := range []struct {
		kind    notify.Kind
		so      bool
		trouble notify.Outage
		over    string
	}{
		{notify.OwnTraffic, t.mostlyOwn(), t.ownTrouble(), "not nearly all calls are our own any more"},
		{notify.UnattributedTraffic, t.unattributable(), t.unattributedTrouble(), "nearly every call from outside is attributed again"},
	} {
		at := slices.IndexFunc(open, func(n notify.Notice) bool { return n.Kind == is.kind })
		switch {
		case is.so && at < 0:
			changed = append(changed, TrafficNotice{Kind: is.kind, Text: is.trouble.Text(), trouble: is.trouble})
		case !is.so && at >= 0 && t.At.Sub(open[at].RaisedAt) >= trafficWindow:
			changed = append(changed, TrafficNotice{Kind: is.kind, Over: true, Text: is.over})
		}
	}
	return changed
}

func (t Provenance) ownTrouble() notify.Outage {
	return notify.Outage{
		What: fmt.Sprintf("%d of the %d calls that reached a service since %s came from addresses of MARKET_OWN_SOURCES",
			t.Own, t.Own+t.Provider+t.Outside, t.Since.UTC().Format("15:04 UTC")),
		Effect: "they move no strikes, so next to nothing is known of the services; all calls are served and settled as always. Callers that come through a proxy of " +
			"ours which MARKET_TRUSTED_PROXIES does not name would look like this",
		Look: "MARKET_OWN_SOURCES and MARKET_TRUSTED_PROXIES",
	}
}

func (t Provenance) unattributedTrouble() notify.Outage {
	return notify.Outage{
		What: fmt.Sprintf("%d of the %d calls from outside that reached a service since %s came with forwarded headers from a peer that is no configured proxy, or "+
			"from a proxy that did not say for whom it asks; most of them from %s", t.Unattributed, t.Outside, t.Since.UTC().Format("15:04 UTC"), t.Peer),
		Effect: "their callers cannot be told apart: what they do counts, and as if one had done it all; all calls are served and settled as always. If that is a proxy " +
			"of yours, name it in MARKET_TRUSTED_PROXIES and let it set X-Forwarded-For. A single caller can send such headers: if it is none of yours, there is nothing to do",
		Look: "MARKET_TRUSTED_PROXIES",
	}
}

// Each part is read from an index that is in the order of time, and no further than its bound. Where our own traffic reaches the bound, the others are
// counted over the time that it takes, so that a share stays a share.
const provenanceSQL = `
WITH own AS MATERIALIZED (
	SELECT recorded_at FROM deliveries
	 WHERE origin <> 'external' AND origin = 'own' AND asked AND recorded_at > market_now() - $1::interval
	 ORDER BY recorded_at DESC LIMIT $2
), span AS (
	SELECT CASE WHEN count(*) = $2 THEN min(recorded_at) ELSE market_now() - $1::interval END AS since, count(*)::int AS own FROM own
), outside AS MATERIALIZED (
	SELECT d.origin, d.source FROM deliveries d
	 WHERE d.asked AND d.origin IN ('external', 'unattributed') AND d.recorded_at > (SELECT since FROM span)
	 ORDER BY d.recorded_at DESC LIMIT $2
), stranger AS (
	SELECT source FROM outside WHERE origin = 'unattributed'
)
SELECT market_now(), since, own,
       (SELECT count(*)::int FROM (SELECT 1 FROM deliveries d
	     WHERE d.origin <> 'external' AND d.origin = 'provider' AND d.asked AND d.recorded_at > (SELECT since FROM span)
	     ORDER BY d.recorded_at DESC LIMIT $2) provider),
       (SELECT count(*)::int FROM outside),
       (SELECT count(*)::int FROM stranger),
       (SELECT source FROM stranger GROUP BY source ORDER BY count(*) DESC, source LIMIT 1)
  FROM span`

// provenanceOf counts the traffic of the last hour, of each kind at most so many.
func provenanceOf(ctx context.Context, db postgres.DB, most int) (Provenance, error) {
	var (
		t    Provenance
		peer *netip.Addr
	)
	err := db.QueryRow(ctx, provenanceSQL, trafficWindow, most).Scan(&t.At, &t.Since, &t.Own, &t.Provider, &t.Outside, &t.Unattributed, &peer)
	if err != nil {
		return Provenance{}, fmt.Errorf("count traffic: %w", err)
	}
	if peer != nil {
		t.Peer = *peer
	}
	return t, nil
}

// WatchTraffic looks once where traffic comes from, keeps the operator's notices of it, and returns those that it raised or settled: of several
// replicas that see the same, one does.
func WatchTraffic(ctx context.Context, db postgres.DB) ([]TrafficNotice, error) {
	t, err := provenanceOf(ctx, db, trafficMax)
	if err != nil {
		return nil, err
	}
	var (
		store notify.Store
		open  []notify.Notice
		told  []TrafficNotice
	)
	for _, kind := range []notify.Kind{notify.OwnTraffic, notify.UnattributedTraffic} {
		of, err := store.Open(ctx, db, kind)
		if err != nil {
			return nil, err
		}
		open = append(open, of...)
	}
	for _, n := range t.notices(open) {
		var ours bool
		if n.Over {
			ours, err = store.Settle(ctx, db, n.Kind, "")
		} else {
			ours, err = store.Raise(ctx, db, n.Kind, "", n.trouble)
		}
		if err != nil {
			return told, err
		}
		if ours {
			told = append(told, n)
		}
	}
	return told, nil
}
