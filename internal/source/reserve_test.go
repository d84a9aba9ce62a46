package source

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"market/internal/postgres"
	"market/internal/postgres/pgtest"
)

func TestMeter_Reserve_OfManyWhoWantTheLastUnitOneGetsIt(t *testing.T) {
	t.Parallel()
	of := hosted()
	of.Guard = Guard{Floor: 100}
	f := newFleet(t, of)
	f.noon()
	f.must(f.meter(0), Refund, 99)
	const rounds, requesters = 20, 64
	for round := range rounds {
		f.oneIsLeft()
		got := f.atOnce(requesters, func(m *Meter) bool {
			g, err := m.Reserve(t.Context(), Refund, 1)
			if err != nil && !isLimit(err, Guarded) {
				t.Error(err)
			}
			return g != nil
		})
		if got != 1 {
			t.Fatalf("round %d: %d of %d got the last unit, want 1", round, got, requesters)
		}
	}
}

func (f *fleet) oneIsLeft() {
	f.t.Helper()
	if _, err := f.db.Exec(f.t.Context(), `UPDATE source_days SET used = 99`); err != nil {
		f.t.Fatal(err)
	}
}

// The same for the statement alone, as often as can be: eight connections of two replicas with eight reservations each, all sent before any is answered, and
// each committed by itself.
func TestReserveSQL_OfManyWhoWantTheLastUnitOneGetsItAThousandTimes(t *testing.T) {
	t.Parallel()
	f := newFleet(t, hosted())
	f.noon()
	f.must(f.meter(0), Refund, 99)
	const rounds, connections, each = 1000, 8, 8
	params := [][]byte{[]byte(hosted().Name), []byte("1"), []byte(f.standing().Day.Format(time.DateOnly)), []byte("100"), []byte("1 hour"), []byte("5 minutes"), []byte("false")}
	var pipes []*pgconn.Pipeline
	for i := range connections {
		conn, err := f.meter(i % 2).r.db.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Release()
		if _, err := conn.Conn().Prepare(t.Context(), "reserve", reserveSQL); err != nil {
			t.Fatal(err)
		}
		pipe := conn.Conn().PgConn().StartPipeline(t.Context())
		defer func() { _ = pipe.Close() }()
		pipes = append(pipes, pipe)
	}
	own := newPool(t, f.url)
	for round := range rounds {
		if _, err := own.Exec(t.Context(), `UPDATE source_days SET used = 99`); err != nil {
			t.Fatal(err)
		}
		var (
			wg  sync.WaitGroup
			got atomic.Int64
		)
		for _, pipe := range pipes {
			wg.Go(func() {
				n, err := reserveEach(pipe, params, each)
				if err != nil {
					t.Error(err)
				}
				got.Add(n)
			})
		}
		if wg.Wait(); got.Load() != 1 {
			t.Fatalf("round %d: %d of %d got the last unit, want 1", round, got.Load(), connections*each)
		}
	}
}

// reserveEach sends so many reservations down a connection, and counts those that were granted.
func reserveEach(pipe *pgconn.Pipeline, params [][]byte, each int) (granted int64, err error) {
	for range each {
		pipe.SendQueryPrepared("reserve", params, nil, nil)
		if err := pipe.Sync(); err != nil {
			return 0, err
		}
	}
	for synced := 0; synced < each; {
		got, err := pipe.GetResults()
		if err != nil {
			return 0, err
		}
		switch got := got.(type) {
		case *pgconn.ResultReader:
			read := got.Read()
			if read.Err != nil {
				return 0, read.Err
			}
			granted += int64(len(read.Rows))
		case *pgconn.PipelineSync:
			synced++
		}
	}
	return granted, nil
}

func TestMeter_Reserve_TheFirstOfADayKeepsToTheCapToo(t *testing.T) {
	t.Parallel()
	of := hosted()
	of.Guard = Guard{Floor: 10}
	f := newFleet(t, of)
	limit := f.refused(f.meter(0), Refund, 11, Guarded)
	s := f.standing()
	if want := s.Day.AddDate(0, 0, 1); !limit.Until.Equal(want) || s.Used != 0 {
		t.Errorf("until %s with %d used, want until %s and none", limit.Until, s.Used, want)
	}
	f.must(f.meter(1), Refund, 10)
	f.refused(f.meter(0), Refund, 1, Guarded)
}

func TestMeter_Reserve_MidnightInTheMiddleOfARun(t *testing.T) {
	t.Parallel()
	of := hosted()
	of.Guard = Guard{Floor: 10, SurgePercent: 200}
	f := newFleet(t, of)
	now := f.now()
	f.shift(nextDay(now).Add(-time.Minute).Sub(now)) // a minute before midnight
	f.must(f.meter(0), Refund, 10)
	f.refused(f.meter(0), Refund, 1, Guarded)
	f.wantTold("at the cap", "out guarded")
	f.must(f.meter(0), Refund, 0)
	f.shift(2 * time.Minute)

	// This process still has yesterday in mind; the statement does not take it, so what is given back is today's too.
	g := f.must(f.meter(0), Refund, 5)
	f.wantTold("after midnight", "back guarded", "resume")
	f.must(f.meter(0), Refund, 15)
	f.refused(f.meter(0), Refund, 1, Guarded)
	g.GiveBack(3)
	f.flush()
	if s := f.standing(); s.Used != 17 || s.Busiest != 10 || s.Cap != 20 || s.Denied != 1 {
		t.Errorf("used %d of %d after a day of %d, denied %d; want 17 of 20 after 10, and 1", s.Used, s.Cap, s.Busiest, s.Denied)
	}
}

const peekSQL = `
CREATE TABLE peeked (commit text);
CREATE FUNCTION peek() RETURNS trigger LANGUAGE plpgsql
AS $$ BEGIN INSERT INTO peeked VALUES (current_setting('synchronous_commit')); RETURN NULL; END $$;
CREATE TRIGGER peek AFTER INSERT OR UPDATE ON source_days FOR EACH ROW EXECUTE FUNCTION peek()`

// All calls of a market meet in one row a source: none may hold it for as long as a disk takes.
func TestMeter_Reserve_ItsCommitDoesNotWaitForTheDiskAndThatOfTheNextStatementDoes(t *testing.T) {
	t.Parallel()
	pool, err := postgres.Open(t.Context(), pgtest.URL(t), func(c *pgxpool.Config) {
		c.MaxConns = 1
		c.ConnConfig.RuntimeParams["synchronous_commit"] = "on"
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	if _, err := pool.Exec(t.Context(), peekSQL); err != nil {
		t.Fatal(err)
	}
	m := New(pool, time.Now, []Source{hosted()}, Hooks{}).Of(hosted().Name)
	for range 2 {
		if _, err := m.Reserve(t.Context(), Settlement, 1); err != nil {
			t.Fatal(err)
		}
	}
	var got string
	const saidSQL = `SELECT string_agg(commit, ' ') || ', then ' || current_setting('synchronous_commit') FROM peeked`
	if err := pool.QueryRow(t.Context(), saidSQL).Scan(&got); err != nil || got != "off off, then on" {
		t.Errorf("the reservations committed with %s, %v; want off off, then on", got, err)
	}
}
