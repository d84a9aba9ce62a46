package catalog

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"market/internal/call"
	"market/internal/config"
	"market/internal/refusal"
	"market/internal/secretbox"
)

const (
	secretPrefix = "mks_" // so that whoever finds one knows what it is, and scanners of leaked keys do
	secretBytes  = 32

	// SecretAfterDefault is how long a new secret waits unless the provider says otherwise; SecretAfterMax is the longest wait.
	SecretAfterDefault = time.Hour
	SecretAfterMax     = 7 * 24 * time.Hour
)

// Secrets keeps what only the service itself may see: the headers that it asks of us, and the secret that shows it that we ask. They are
// stored encrypted, and opened for a Snapshot alone. The zero value opens nothing, and a service with headers is broken without them.
type Secrets struct{ box secretbox.Box }

// NewSecrets returns secrets that are sealed with the box.
func NewSecrets(box secretbox.Box) Secrets { return Secrets{box} }

// A ServiceSecret is what we send with every request to a service. The value is there only in a Snapshot.
type ServiceSecret struct {
	Value config.Secret
	Since time.Time // in market time; zero where there is none yet
	Next  time.Time // from when another one will be sent; zero where none waits

	next config.Secret // the one that waits
	from time.Time     // Next in this process's time
}

// At returns the secret that is sent at a moment of this process's time. The one that waits takes over by the clock, and not by the next look at the
// database.
func (s ServiceSecret) At(now time.Time) config.Secret {
	if !s.from.IsZero() && !now.Before(s.from) {
		return s.next
	}
	return s.Value
}

// Values returns every secret that is sent, or will be.
func (s ServiceSecret) Values() []config.Secret { return []config.Secret{s.Value, s.next} }

// The row is locked, so that the base URL which the values are bound to can't change meanwhile, and two changes count each other's headers.
const lockForSecretsSQL = `
SELECT state, base_url FROM services WHERE id = $1 FOR NO KEY UPDATE`

func lockForSecrets(ctx context.Context, tx pgx.Tx, serviceID uuid.UUID) (baseURL string, err error) {
	var state State
	err = tx.QueryRow(ctx, lockForSecretsSQL, serviceID).Scan(&state, &baseURL)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return "", refusal.New(call.NotFound, "no such service")
	case err != nil:
		return "", fmt.Errorf("lock service %s: %w", serviceID, err)
	case state == Retired:
		return "", refusal.New(call.Conflict, "the service is retired")
	}
	return baseURL, nil
}

const (
	sealedHeadersSQL = `
SELECT name, sealed FROM service_headers WHERE service_id = $1`

	removeHeadersSQL = `
DELETE FROM service_headers WHERE service_id = $1 AND ($2 AND name <> ALL($4) OR name = ANY($3))`

	setHeaderSQL = `
INSERT INTO service_headers (service_id, name, sealed) VALUES ($1, $2, $3)
ON CONFLICT (service_id, name) DO UPDATE SET sealed = excluded.sealed, set_at = excluded.set_at`

	listHeadersSQL = `
SELECT name, set_at, length(name) + length(sealed) FROM service_headers WHERE service_id = $1 ORDER BY name LIMIT 1000`
)

// SetHeaders changes the headers of a service and returns their names. More than a service may have is a refusal with InvalidRequest. They are
// bound to the host of its base URL as it is in this transaction: whoever moves a service to another host sets them again. A header that is so already
// stays as it is, and since when.
func (s Secrets) SetHeaders(ctx context.Context, tx pgx.Tx, serviceID uuid.UUID, c HeaderChange) ([]ServiceHeader, error) {
	baseURL, err := lockForSecrets(ctx, tx, serviceID)
	if err != nil {
		return nil, err
	}
	stands, err := s.standing(ctx, tx, serviceID, baseURL)
	if err != nil {
		return nil, err
	}
	if _, err := tx.Exec(ctx, removeHeadersSQL, serviceID, c.Replace, c.Remove, slices.AppendSeq([]string{}, maps.Keys(c.Set))); err != nil {
		return nil, fmt.Errorf("remove headers of service %s: %w", serviceID, err)
	}
	for name, value := range c.Set {
		if is, ok := stands[name]; ok && is == value.Reveal() {
			continue
		}
		sealed, err := s.box.Seal([]byte(value.Reveal()), headerContext(serviceID, name, baseURL))
		if err != nil {
			return nil, fmt.Errorf("seal header %s of service %s: %w", name, serviceID, err)
		}
		if _, err := tx.Exec(ctx, setHeaderSQL, serviceID, name, sealed); err != nil {
			return nil, fmt.Errorf("set header %s of service %s: %w", name, serviceID, err)
		}
	}
	rows, err := tx.Query(ctx, listHeadersSQL, serviceID)
	if err != nil {
		return nil, fmt.Errorf("list headers of service %s: %w", serviceID, err)
	}
	var total int
	headers, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (ServiceHeader, error) {
		var h ServiceHeader
		var size int
		err := row.Scan(&h.Name, &h.SetAt, &size)
		total += size - secretbox.Overhead
		return h, err
	})
	if err != nil {
		return nil, fmt.Errorf("list headers of service %s: %w", serviceID, err)
	}
	if problem := tooManyHeaders(len(headers), total); problem != "" {
		return nil, refusal.New(call.InvalidRequest, "%s", problem)
	}
	return headers, nil
}

// standing returns the headers of a service as far as they are for this host.
func (s Secrets) standing(ctx context.Context, tx pgx.Tx, serviceID uuid.UUID, baseURL string) (map[string]string, error) {
	rows, err := tx.Query(ctx, sealedHeadersSQL, serviceID)
	if err != nil {
		return nil, fmt.Errorf("read headers of service %s: %w", serviceID, err)
	}
	stands := map[string]string{}
	var name string
	var sealed []byte
	_, err = pgx.ForEachRow(rows, []any{&name, &sealed}, func() error {
		if value, err := s.box.Open(sealed, headerContext(serviceID, name, baseURL)); err == nil {
			stands[name] = string(value)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read headers of service %s: %w", serviceID, err)
	}
	return stands, nil
}

const (
	// Only the one that is sent now is kept: the older ones are done, and one that waits is replaced.
	dropSecretsSQL = `
DELETE FROM service_secrets WHERE service_id = $1 AND id IS DISTINCT FROM (
	SELECT id FROM service_secrets WHERE service_id = $1 AND since <= market_now() ORDER BY since DESC, id DESC LIMIT 1)`

	forgetSecretsSQL = `
DELETE FROM service_secrets WHERE service_id = $1`

	keptSecretSQL = `
SELECT sealed FROM service_secrets WHERE service_id = $1`

	insertSecretSQL = `
INSERT INTO service_secrets (service_id, sealed, since) VALUES ($1, $2, market_now() + $3::interval) RETURNING since`
)

// NewSecret makes a secret for a service and returns it, which nothing does again, and from when it is sent: after so long, or at once where
// there is none before that could be sent until then. One that waits already is given up for it.
func (s Secrets) NewSecret(ctx context.Context, tx pgx.Tx, serviceID uuid.UUID, after time.Duration) (config.Secret, time.Time, error) {
	if _, err := lockForSecrets(ctx, tx, serviceID); err != nil {
		return config.Secret{}, time.Time{}, err
	}
	random := make([]byte, secretBytes)
	_, _ = rand.Read(random) // never fails
	value := secretPrefix + base64.RawURLEncoding.EncodeToString(random)
	sealed, err := s.box.Seal([]byte(value), secretContext(serviceID))
	if err != nil {
		return config.Secret{}, time.Time{}, fmt.Errorf("seal secret of service %s: %w", serviceID, err)
	}
	if _, err := tx.Exec(ctx, dropSecretsSQL, serviceID); err != nil {
		return config.Secret{}, time.Time{}, fmt.Errorf("drop secrets of service %s: %w", serviceID, err)
	}
	var kept []byte
	if err := tx.QueryRow(ctx, keptSecretSQL, serviceID).Scan(&kept); err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return config.Secret{}, time.Time{}, fmt.Errorf("read secret of service %s: %w", serviceID, err)
	}
	if _, err := s.box.Open(kept, secretContext(serviceID)); err != nil {
		after = 0
		if _, err := tx.Exec(ctx, forgetSecretsSQL, serviceID); err != nil { // nobody can send it any more
			return config.Secret{}, time.Time{}, fmt.Errorf("forget secret of service %s: %w", serviceID, err)
		}
	}
	var since time.Time
	if err := tx.QueryRow(ctx, insertSecretSQL, serviceID, sealed, after).Scan(&since); err != nil {
		return config.Secret{}, time.Time{}, fmt.Errorf("insert secret of service %s: %w", serviceID, err)
	}
	return config.NewSecret(value), since, nil
}

// open gives a service the values that its row holds sealed, in the order of its headers. A service that wants a header or a secret which
// can't be opened is broken: asked without it, it would refuse us, and that would look like its own failure.
func (s Secrets) open(service *Service, headers [][]byte, secret, next []byte) {
	for i := range service.Headers {
		h := &service.Headers[i]
		value, err := s.box.Open(headers[i], headerContext(service.ID, h.Name, service.BaseURL))
		if err != nil {
			service.Broken, service.closed = "its headers can't be opened here", true
			return
		}
		h.Value = config.NewSecret(string(value))
	}
	for _, one := range []struct {
		sealed []byte
		to     *config.Secret
	}{{secret, &service.Secret.Value}, {next, &service.Secret.next}} {
		if one.sealed == nil {
			continue
		}
		value, err := s.box.Open(one.sealed, secretContext(service.ID))
		if err != nil {
			service.Broken, service.closed = "its secret can't be opened here", true
			return
		}
		*one.to = config.NewSecret(string(value))
	}
}

// headerContext binds a value to where it may be sent, so that nobody who can write to the database, or change a listing, has it sent elsewhere.
func headerContext(serviceID uuid.UUID, name, baseURL string) []byte {
	return fmt.Appendf(nil, "service header %s %s %s", serviceID, name, origin(baseURL))
}

// origin is where a base URL leads, without its path.
func origin(baseURL string) string {
	u, err := url.Parse(baseURL)
	if err != nil {
		return baseURL
	}
	return u.Scheme + "://" + u.Host
}

func secretContext(serviceID uuid.UUID) []byte {
	return fmt.Appendf(nil, "service secret %s", serviceID)
}
