package notify

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"market/internal/source"
)

// Names of the channels, which are those of their sources.
const (
	mailChannel    = source.Mail
	webhookChannel = source.Webhook
)

// keepTime bounds a write of what became of a message. It has a context of its own: what was sent must be kept as sent.
const keepTime = 10 * time.Second

// Results of a message, for whoever counts them.
const (
	ResultSent    = "sent"
	ResultFailed  = "failed"
	ResultGivenUp = "given_up"
)

// A Way is a channel to the operator, with what may be used of it.
type Way struct {
	Name    string // of its source
	Channel Channel
	// Reserve asks whether it may be used now: report says afterwards what came of it, nil where it took the message. A *source.LimitError says until when
	// it may not.
	Reserve func(ctx context.Context) (report func(ctx context.Context, f *Failure), err error)
}

// WayBy is a channel that is metered as a source. Notices to the operator reserve as source.Refund, the class to which nothing is kept shut: how many of
// them there are is up to us. Letters, of which strangers make as many as they like, reserve as source.Other.
func WayBy(m *source.Meter, class source.Class, c Channel) Way {
	of := m.Source()
	return Way{Name: of.Name, Channel: c, Reserve: func(ctx context.Context) (func(context.Context, *Failure), error) {
		grant, err := m.Reserve(ctx, class, 1)
		if err != nil {
			return nil, err
		}
		return func(ctx context.Context, f *Failure) {
			verdict := source.Verdict{Kind: source.Worked}
			switch {
			case f == nil:
			case f.AtRecipient && class == source.Other:
				verdict.Kind = source.Troubled // a stranger chose the address: what is wrong with it is no word about us, however it reads
			default:
				verdict = source.Classify(of.Kind, of.RunsOut, of.Shapes, source.Answer{Status: f.Status, RetryAfter: f.RetryAfter, Code: f.Code, Text: f.Text})
			}
			grant.Report(ctx, verdict)
		}, nil
	}}
}

// SenderOptions are what a Sender is made from.
type SenderOptions struct {
	Ways      []Way                                  // in the order in which they are tried; none: everything waits, and is given up
	PublicURL string                                 // where our pages are
	Counted   func(kind Kind, result string)         // hears what became of messages; may be nil
	Report    func(err error, kind Kind, why string) // hears what a message did not go out for, for the log; may be nil
}

// A Sender takes messages to the operator.
type Sender struct {
	db    *pgxpool.Pool
	store Store
	o     SenderOptions
}

// NewSender returns a sender.
func NewSender(db *pgxpool.Pool, o SenderOptions) *Sender {
	if o.Counted == nil {
		o.Counted = func(Kind, string) {}
	}
	if o.Report == nil {
		o.Report = func(error, Kind, string) {}
	}
	return &Sender{db: db, o: o}
}

// send takes one message, which the caller has leased, to the first channel that takes it. Where none does, it waits.
func (s *Sender) send(ctx context.Context, d due) error {
	p, err := s.store.pending(ctx, s.db, d)
	if errors.Is(err, errDone) {
		return nil
	}
	if err != nil {
		return err
	}
	t, err := s.try(ctx, p, s.o.Ways)
	if err != nil {
		return err // nothing was learnt, and the lease runs out
	}
	return s.keep(ctx, p, t)
}

// keep writes what became of a message.
func (s *Sender) keep(ctx context.Context, p pending, t tried) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), keepTime)
	defer cancel()
	if t.taken != "" {
		if err := s.store.sent(ctx, s.db, p.due, t.taken, p.over()); err != nil {
			return err
		}
		s.o.Counted(p.Kind, ResultSent)
		return s.store.channelWorked(ctx, s.db, t.taken)
	}
	by := delay{why: t.why(), wait: waitAfter(p.Failures + 1), failures: 1}
	if t.failed == 0 && t.until != nil {
		by.failures, by.wait, by.until = 0, 0, t.until
	}
	if by.until != nil && len(t.attempts) == len(s.o.Ways) {
		if err := s.store.deferAll(ctx, s.db, *by.until); err != nil {
			return err
		}
	}
	givenUp, err := s.store.putOff(ctx, s.db, p.due, by)
	if err != nil {
		return err
	}
	if by.failures > 0 {
		s.o.Counted(p.Kind, ResultFailed)
	}
	if givenUp {
		s.o.Counted(p.Kind, ResultGivenUp)
		s.o.Report(errGivenUp, p.Kind, by.why)
	} else if by.failures > 0 && len(s.o.Ways) > 0 {
		s.o.Report(errNotSent, p.Kind, by.why)
	}
	return nil
}

var (
	errNotSent = errors.New("a notice to the operator was not sent; it is tried again")
	errGivenUp = errors.New("a notice to the operator could not be sent for three days and is given up")
)

// An Attempt is one channel that did not take a message.
type Attempt struct{ Channel, Why string }

// tried is what became of a message, channel by channel.
type tried struct {
	taken    string // the channel that took it
	attempts []Attempt
	failed   int        // channels that were asked
	until    *time.Time // the first moment at which one that may not be asked now may be; nil: all that there are were asked
}

// why is what came of it, for people.
func (t tried) why() string {
	if len(t.attempts) == 0 {
		return "no channel can take it: neither MARKET_SMTP_URL nor MARKET_OPERATOR_WEBHOOK is configured, or it is about the only one"
	}
	words := make([]string, 0, len(t.attempts))
	for _, a := range t.attempts {
		words = append(words, a.Channel+": "+a.Why)
	}
	return strings.Join(words, "; ")
}

// try asks one channel after the other until one takes the message. The one that the notice is about is not asked.
func (s *Sender) try(ctx context.Context, p pending, ways []Way) (tried, error) {
	var t tried
	message := p.composed(s.o.PublicURL)
	for _, way := range ways {
		if p.about(way.Name) {
			continue
		}
		report, err := way.Reserve(ctx)
		if limit, ok := errors.AsType[*source.LimitError](err); ok {
			if t.until == nil || limit.Until.Before(*t.until) {
				t.until = &limit.Until
			}
			t.attempts = append(t.attempts, Attempt{way.Name, limit.Error()})
			continue
		}
		if err != nil {
			return t, fmt.Errorf("reserve %s: %w", way.Name, err)
		}
		f := s.ask(ctx, way, message)
		if ctx.Err() != nil && f != nil {
			return t, ctx.Err() // it is we who stopped: that says nothing of the channel
		}
		kept, cancel := context.WithTimeout(context.WithoutCancel(ctx), keepTime)
		report(kept, f)
		if f != nil {
			err = s.store.channelFailed(kept, s.db, way.Name, f.Error(), others(s.o.Ways, way.Name))
		}
		cancel()
		if f == nil {
			t.taken = way.Name
			return t, nil
		}
		t.failed++
		t.attempts = append(t.attempts, Attempt{way.Name, f.Error()})
		if err != nil {
			s.o.Report(err, p.Kind, "")
		}
	}
	return t, nil
}

// ask sends a message by one channel.
func (s *Sender) ask(ctx context.Context, way Way, m Message) *Failure {
	err := way.Channel.Send(ctx, m)
	if err == nil {
		return nil
	}
	if f, ok := errors.AsType[*Failure](err); ok {
		return f
	}
	return failed(err)
}

func others(ways []Way, name string) []string {
	var out []string
	for _, way := range ways {
		if way.Name != name {
			out = append(out, way.Name)
		}
	}
	return out
}

// takeDue settles what has been calm for long enough, and leases what is due.
func (s *Sender) takeDue(ctx context.Context, limit int, hand func(tx pgx.Tx, due []due) error) error {
	if err := s.store.SettleCalm(ctx, s.db); err != nil {
		return err
	}
	return pgx.BeginFunc(ctx, s.db, func(tx pgx.Tx) error {
		all, err := s.store.takeDue(ctx, tx, limit)
		if err != nil || len(all) == 0 {
			return err
		}
		return hand(tx, all)
	})
}
