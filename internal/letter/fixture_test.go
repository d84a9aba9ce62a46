package letter

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"market/internal/catalog"
	"market/internal/postgres"
	"market/internal/postgres/pgtest"
)

var both = []Channel{Email, Webhook}

// A post is one listed service and market time that stands still. It is the book and both carriers, too.
type post struct {
	db      *pgxpool.Pool
	service uuid.UUID
	contact Contact

	carried []string                      // channel and id of each message that was carried, in their order
	carry   func(by Channel) (int, error) // nil: everything arrives
}

func newPost(t *testing.T) *post {
	t.Helper()
	p := &post{db: pgtest.New(t), contact: Contact{Email: "ops@weather.example", Webhook: "https://weather.example/hook"}}
	pgtest.Freeze(t, p.db)
	draft, err := catalog.ParseDraft([]byte(`{"slug":"weather","name":"Weather","base_url":"https://api.weather.example",
		"probe":{"path":"/healthz","statuses":["200"]},"endpoints":[{"method":"GET","path":"/","price_usd":"0.01"}]}`), catalog.Rules{})
	if err != nil {
		t.Fatal(err)
	}
	err = pgx.BeginFunc(t.Context(), p.db, func(tx pgx.Tx) error {
		s, err := catalog.Store{}.Create(t.Context(), tx, draft)
		p.service = s.ID
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *post) Contact(context.Context, postgres.DB, uuid.UUID) (Contact, error) {
	return p.contact, nil
}

// A carrier is the post by one channel.
type carrier struct {
	*post
	by Channel
}

func (c carrier) Carry(_ context.Context, _ Contact, m Message) (int, error) {
	c.carried = append(c.carried, string(c.by)+" "+m.ID)
	if c.carry == nil {
		return 200, nil
	}
	return c.carry(c.by)
}

var errHangsUp = errors.New("the receiver hung up")

func hangsUp(Channel) (int, error) { return 0, errHangsUp }

func (p *post) worker() *Worker {
	return NewWorker(p.db, p, map[Channel]Carrier{Email: carrier{p, Email}, Webhook: carrier{p, Webhook}}, "https://market.example")
}

// write writes letters by these channels and returns their ids.
func (p *post) write(t *testing.T, by []Channel, kinds ...Kind) (ids []uuid.UUID) {
	t.Helper()
	for _, k := range kinds {
		err := pgx.BeginFunc(t.Context(), p.db, func(tx pgx.Tx) error {
			return Store{}.Write(t.Context(), tx, Letter{Service: p.service, Kind: k, Facts: Facts{Service: "weather", Name: "Weather"}}, by)
		})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, p.log(t)[0].ID)
	}
	return ids
}

// run does what the queue would: it sends for each box that has something due.
func (p *post) run(t *testing.T) {
	t.Helper()
	due, err := Store{}.Due(t.Context(), p.db, dueMax)
	if err != nil {
		t.Fatal(err)
	}
	for _, box := range due {
		for more := true; more; {
			if more, err = p.worker().one(t.Context(), box); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// log returns all letters, the newest first.
func (p *post) log(t *testing.T) []Logged {
	t.Helper()
	all, err := Store{}.List(t.Context(), p.db, p.service, uuid.UUID{}, 100)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// by returns what became of a letter by one channel.
func (p *post) by(t *testing.T, id uuid.UUID, c Channel) Sending {
	t.Helper()
	for _, l := range p.log(t) {
		for _, s := range l.Sendings {
			if l.ID == id && s.Channel == c {
				return s
			}
		}
	}
	t.Fatalf("letter %s does not go by %s", id, c)
	return Sending{}
}

func carriedBy(c Channel, id uuid.UUID) string { return fmt.Sprintf("%s %s", c, id) }
