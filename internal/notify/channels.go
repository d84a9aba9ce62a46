package notify

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// ChannelOut is that a channel of notices takes nothing any more; its subject is the channel.
const ChannelOut Kind = "channel_out"

const (
	// outAfterFailures and outAfter are when a channel counts as out: so many failures in a row, over so long at least. A mail server that restarts is none.
	outAfterFailures = 3
	outAfter         = 10 * time.Minute
)

// channelOut says whether a channel is out, by its failures in a row and for how long it has failed.
func channelOut(failures int, failing time.Duration) bool {
	return failures >= outAfterFailures && failing >= outAfter
}

const (
	channelFailedSQL = `
INSERT INTO notice_channels AS c (channel, failures, failing_since, last_error) VALUES ($1, 1, market_now(), $2)
ON CONFLICT (channel) DO UPDATE SET failures = c.failures + 1, failing_since = coalesce(c.failing_since, market_now()), last_error = $2
RETURNING failures, failing_since, market_now()`

	// One trouble, one notice: what the source of that name has told already is not told again in other words.
	toldSQL = `SELECT EXISTS (SELECT 1 FROM notices WHERE kind = $1 AND subject = $2 AND settled_at IS NULL)`

	channelWorkedSQL = `UPDATE notice_channels SET failures = 0, failing_since = NULL, last_error = '' WHERE channel = $1 AND failures > 0`
)

// channelFailed keeps that a channel did not take a message, and raises a notice when that makes it one that is out.
func (s Store) channelFailed(ctx context.Context, db *pgxpool.Pool, channel, why string, others []string) error {
	return pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
		var (
			failures   int
			since, now time.Time
			told       bool
		)
		if err := tx.QueryRow(ctx, channelFailedSQL, channel, why).Scan(&failures, &since, &now); err != nil {
			return fmt.Errorf("keep a failure of channel %s: %w", channel, err)
		}
		if !channelOut(failures, now.Sub(since)) {
			return nil
		}
		if err := tx.QueryRow(ctx, toldSQL, SourceOut, channel).Scan(&told); err != nil || told {
			return err
		}
		_, err := s.Raise(ctx, tx, ChannelOut, channel, outOf(channel, failures, since, why, others))
		return err
	})
}

// channelWorked ends what was kept of failures, and the notice of them. What waits since it failed is due now.
func (s Store) channelWorked(ctx context.Context, db *pgxpool.Pool, channel string) error {
	return pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, channelWorkedSQL, channel)
		if err != nil {
			return fmt.Errorf("keep that channel %s works: %w", channel, err)
		}
		if tag.RowsAffected() > 0 {
			if err := s.Resume(ctx, tx); err != nil {
				return err
			}
		}
		_, err = s.Settle(ctx, tx, ChannelOut, channel)
		return err
	})
}

// outOf tells of a channel that is out.
func outOf(channel string, failures int, since time.Time, why string, others []string) Outage {
	o := Outage{
		What: fmt.Sprintf("notices to you do not go out by %s: the last %d attempts failed, the first of them at %s, and the last one with: %s",
			channel, failures, timeText(since), why),
		Look: settingsOf(channel) + "\n/admin/notices",
	}
	if len(others) == 0 {
		o.Effect = "there is no other channel, so notices wait, and each is tried for three days; everything else goes on"
		return o
	}
	o.Effect = fmt.Sprintf("notices go by %s instead, and each is tried for three days; everything else goes on", others[0])
	return o
}

// settingsOf names what a channel is configured by.
func settingsOf(channel string) string {
	switch channel {
	case mailChannel:
		return "MARKET_SMTP_URL and the mail server that it names"
	case webhookChannel:
		return "MARKET_OPERATOR_WEBHOOK, MARKET_OPERATOR_WEBHOOK_SECRET_FILE and the program that is there"
	}
	return "the settings of " + channel
}

// timeText is a time of the market for people.
func timeText(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }
