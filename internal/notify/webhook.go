package notify

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

const (
	webhookTime = 10 * time.Second
	// webhookAnswerMax is what is read of an answer; it is thrown away but for the beginning of a refusal.
	webhookAnswerMax = 64 << 10
	// retryAfterMax keeps a receiver from sending us away for good.
	retryAfterMax = 24 * time.Hour
)

// A Webhook sends messages as signed JSON by POST, in the form of Standard Webhooks.
type Webhook struct {
	url     string
	signers []*standardwebhooks.Webhook
	client  *http.Client
}

// NewWebhook returns a webhook that signs with every secret ("whsec_…"), so that one can be replaced while the receiver still knows the other. The
// client decides which addresses may be dialled; it is used without following redirects: what is signed for one address is for no other. An error does
// not repeat the URL or a secret.
func NewWebhook(address string, secrets []string, client *http.Client) (*Webhook, error) {
	u, err := url.Parse(address)
	if err != nil || (u.Scheme != "https" && u.Scheme != "http") || u.Host == "" {
		return nil, errors.New("the webhook is no http or https URL")
	}
	w := &Webhook{url: address}
	for _, secret := range secrets {
		signer, err := standardwebhooks.NewWebhook(secret)
		if err != nil {
			return nil, errors.New("a secret of the webhook is not whsec_ and base64")
		}
		w.signers = append(w.signers, signer)
	}
	if len(w.signers) == 0 {
		return nil, errors.New("the webhook has no secret to sign with")
	}
	own := *client
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	w.client = &own
	return w, nil
}

// A webhookBody is the form that Standard Webhooks recommends.
type webhookBody struct {
	Type      string          `json:"type"`
	Timestamp string          `json:"timestamp"`
	Data      json.RawMessage `json:"data"`
}

// Send posts the message. Only an answer of 2xx means that it was taken.
func (w *Webhook) Send(ctx context.Context, m Message) error {
	ctx, cancel := context.WithTimeout(ctx, webhookTime)
	defer cancel()
	body, err := json.Marshal(webhookBody{Type: m.Type, Timestamp: m.At.UTC().Format(time.RFC3339Nano), Data: m.Data})
	if err != nil {
		return failed(err)
	}
	r, err := w.request(ctx, m.ID, body)
	if err != nil {
		return failed(err)
	}
	response, err := w.client.Do(r)
	if err != nil {
		return failed(withoutURL(err))
	}
	defer response.Body.Close()                                            //nolint:errcheck // it was only read
	text, _ := io.ReadAll(io.LimitReader(response.Body, webhookAnswerMax)) // what of it did not come is not needed
	if response.StatusCode >= 200 && response.StatusCode < 300 {
		return nil
	}
	said := clean(string(text))
	if said == "" {
		said = http.StatusText(response.StatusCode)
	}
	return &Failure{Status: response.StatusCode, RetryAfter: retryAfter(response.Header.Get("Retry-After"), time.Now()), Text: said}
}

// request signs the body. The time of a signature is that of the sending: receivers refuse old ones, also of a message that waited.
func (w *Webhook) request(ctx context.Context, id string, body []byte) (*http.Request, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url, bytes.NewReader(body))
	if err != nil {
		return nil, withoutURL(err)
	}
	at := time.Now()
	var signatures bytes.Buffer
	for i, signer := range w.signers {
		signature, err := signer.Sign(id, at, body)
		if err != nil {
			return nil, fmt.Errorf("sign: %w", err)
		}
		if i > 0 {
			signatures.WriteByte(' ')
		}
		signatures.WriteString(signature)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "market")
	r.Header.Set(standardwebhooks.HeaderWebhookID, id)
	r.Header.Set(standardwebhooks.HeaderWebhookTimestamp, strconv.FormatInt(at.Unix(), 10))
	r.Header.Set(standardwebhooks.HeaderWebhookSignature, signatures.String())
	return r, nil
}

// withoutURL drops the address that net/http puts into its errors: its path is often all that keeps others out.
func withoutURL(err error) error {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		return wrapped.Err
	}
	return err
}

// retryAfter reads seconds or a date; 0 where it is neither.
func retryAfter(header string, now time.Time) time.Duration {
	var wait time.Duration
	if seconds, err := strconv.ParseInt(header, 10, 32); err == nil {
		wait = time.Duration(seconds) * time.Second
	} else if at, err := http.ParseTime(header); err == nil {
		wait = at.Sub(now)
	}
	return min(max(wait, 0), retryAfterMax)
}
