package catalog

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"market/internal/call"
	"market/internal/config"
	"market/internal/postgres"
	"market/internal/refusal"
)

const (
	noticeSecretPrefix = "whsec_" // of Standard Webhooks
	noticeSecretBytes  = 32

	// NoticeSecretBeside is for how long a secret signs beside the one that replaced it.
	NoticeSecretBeside = 24 * time.Hour
	// noticeSecretsMax bounds how many sign one message.
	noticeSecretsMax = 5
)

const (
	dropNoticeSecretsSQL = `
DELETE FROM service_notice_secrets WHERE service_id = $1 AND signs_until <= market_now()`

	endNoticeSecretSQL = `
UPDATE service_notice_secrets SET signs_until = market_now() + $2::interval WHERE service_id = $1 AND signs_until IS NULL`

	insertNoticeSecretSQL = `
INSERT INTO service_notice_secrets (service_id, sealed)
SELECT $1, $2 WHERE (SELECT count(*) FROM service_notice_secrets WHERE service_id = $1) < $3
RETURNING made_at`

	noticeSecretsSQL = `
SELECT sealed FROM service_notice_secrets
 WHERE service_id = $1 AND (signs_until IS NULL OR signs_until > market_now()) ORDER BY id DESC LIMIT $2`
)

// NewNoticeSecret makes the secret that signs what is sent to a service's webhook, and returns it, which nothing does again, and since when it is
// there. The one before it signs beside it for a while. The service's row is locked.
func (s Secrets) NewNoticeSecret(ctx context.Context, tx pgx.Tx, serviceID uuid.UUID) (config.Secret, time.Time, error) {
	none := func(err error) (config.Secret, time.Time, error) {
		return config.Secret{}, time.Time{}, fmt.Errorf("make notice secret of service %s: %w", serviceID, err)
	}
	random := make([]byte, noticeSecretBytes)
	_, _ = rand.Read(random) // never fails
	value := noticeSecretPrefix + base64.StdEncoding.EncodeToString(random)
	sealed, err := s.box.Seal([]byte(value), noticeSecretContext(serviceID))
	if err != nil {
		return none(err)
	}
	if _, err := tx.Exec(ctx, dropNoticeSecretsSQL, serviceID); err != nil {
		return none(err)
	}
	if _, err := tx.Exec(ctx, endNoticeSecretSQL, serviceID, NoticeSecretBeside); err != nil {
		return none(err)
	}
	var madeAt time.Time
	rows, err := tx.Query(ctx, insertNoticeSecretSQL, serviceID, sealed, noticeSecretsMax)
	if err != nil {
		return none(err)
	}
	made, err := pgx.CollectRows(rows, pgx.RowTo[time.Time])
	switch {
	case err != nil:
		return none(err)
	case len(made) == 0:
		return config.Secret{}, time.Time{}, refusal.New(call.Conflict, "%d secrets sign already; the oldest of them ends within %s", noticeSecretsMax, "24 h")
	}
	madeAt = made[0]
	return config.NewSecret(value), madeAt, nil
}

// NoticeSecrets returns the secrets that sign what is sent to a service's webhook now, the current one first; none where there is none, or none that
// can be opened here.
func (s Secrets) NoticeSecrets(ctx context.Context, db postgres.DB, serviceID uuid.UUID) ([]config.Secret, error) {
	rows, err := db.Query(ctx, noticeSecretsSQL, serviceID, noticeSecretsMax)
	if err != nil {
		return nil, fmt.Errorf("read notice secrets of service %s: %w", serviceID, err)
	}
	sealed, err := pgx.CollectRows(rows, pgx.RowTo[[]byte])
	if err != nil {
		return nil, fmt.Errorf("read notice secrets of service %s: %w", serviceID, err)
	}
	var secrets []config.Secret
	for _, one := range sealed {
		if value, err := s.box.Open(one, noticeSecretContext(serviceID)); err == nil {
			secrets = append(secrets, config.NewSecret(string(value)))
		}
	}
	return secrets, nil
}

// noticeSecret makes a secret for a webhook that has none that could sign; it is zero where there is one.
func (s Secrets) noticeSecret(ctx context.Context, tx pgx.Tx, serviceID uuid.UUID, n Notices) (config.Secret, error) {
	if n.Webhook == "" {
		return config.Secret{}, nil
	}
	there, err := s.NoticeSecrets(ctx, tx, serviceID)
	if err != nil || len(there) > 0 {
		return config.Secret{}, err
	}
	made, _, err := s.NewNoticeSecret(ctx, tx, serviceID)
	return made, err
}

// EditNoticeSecret makes another secret for the webhook of a service: see Secrets.NewNoticeSecret. What is kept of it is who asked for it, and when.
func (st Store) EditNoticeSecret(ctx context.Context, tx pgx.Tx, slug string, edit Edit) (config.Secret, time.Time, Edited, error) {
	none := func(err error) (config.Secret, time.Time, Edited, error) {
		return config.Secret{}, time.Time{}, Edited{}, err
	}
	s, err := st.open(ctx, tx, slug, edit)
	if err != nil {
		return none(err)
	}
	if s.Notices.Webhook == "" {
		return none(refusal.New(call.Conflict, "the listing names no webhook: set notices.webhook first"))
	}
	value, madeAt, err := edit.Secrets.NewNoticeSecret(ctx, tx, s.ID)
	if err != nil {
		return none(err)
	}
	after := document{"notice_secret": map[string]any{"made_at": madeAt.UTC().Format(instant)}}
	s.Revision, err = revise(ctx, tx, s.ID, revised{by: edit.By, before: document{}, after: after})
	return value, madeAt, Edited{Service: s, Changed: true}, err
}

func noticeSecretContext(serviceID uuid.UUID) []byte {
	return fmt.Appendf(nil, "service notice secret %s", serviceID)
}
