package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/shopspring/decimal"

	"market/internal/caller"
	"market/internal/chain"
	"market/internal/devnet"
	"market/internal/money"
)

// refundTime is how long the demo waits for a refund: the payment's and the refund's own blocks.
const refundTime = 45 * time.Second

// A story is what happened, as --json prints it.
type story struct {
	Network  string   `json:"network"`
	Asset    string   `json:"asset"`
	Caller   string   `json:"caller"`
	Treasury string   `json:"treasury"`
	Before   balances `json:"balances_before"`
	Served   episode  `json:"served_call"`
	Refunded episode  `json:"refunded_call"`
	After    balances `json:"balances_after"`
	AddsUp   bool     `json:"balances_add_up"`
}

// balances are read from the chain, in test dollars.
type balances struct {
	Caller   decimal.Decimal `json:"caller_usd"`
	Treasury decimal.Decimal `json:"treasury_usd"`
}

// An episode is one call from its quote to where its money is.
type episode struct {
	URL               string          `json:"url"`
	PriceUSD          decimal.Decimal `json:"price_usd"`
	PayTo             string          `json:"pay_to"`
	Call              string          `json:"call"`
	CallURL           string          `json:"call_url"`
	Outcome           string          `json:"outcome"`
	Reason            string          `json:"reason,omitempty"`
	Status            int             `json:"status"`
	Answer            string          `json:"answer"`
	Settlement        string          `json:"settlement_transaction"`
	RefundState       string          `json:"refund_state,omitempty"`
	RefundTransaction string          `json:"refund_transaction,omitempty"`
}

// act makes the two calls.
func act(ctx context.Context, w *world, say narrator) (*story, error) {
	key, err := chain.ParseKey(w.callerKey)
	if err != nil {
		return nil, err
	}
	client := &caller.Client{Key: key, MaxUSD: decimal.New(1, -1)}
	s := &story{Network: devnet.NetworkID, Asset: devnet.TokenAddress().Hex(), Caller: w.caller.Hex(), Treasury: w.treasury.Hex()}
	if s.Before, err = w.balances(ctx); err != nil {
		return nil, err
	}
	say.before(s)

	s.Served, err = pay(ctx, client, caller.Request{Method: http.MethodPost, URL: w.app.URL() + "/s/weather/v1/current",
		Header: http.Header{"Content-Type": {"application/json"}}, Body: []byte(`{"city":"Lima"}`)}, w.app.URL())
	if err != nil {
		return nil, err
	}
	say.served(s.Served)

	s.Refunded, err = pay(ctx, client, caller.Request{Method: http.MethodGet, URL: w.app.URL() + "/s/oracle/v1/answer"}, w.app.URL())
	if err != nil {
		return nil, err
	}
	say.failed(s.Refunded)
	if err := awaitRefund(ctx, client, &s.Refunded); err != nil {
		return nil, err
	}
	say.refunded(s.Refunded)

	if s.After, err = w.balances(ctx); err != nil {
		return nil, err
	}
	s.AddsUp = s.addsUp()
	say.after(s)
	return s, nil
}

func pay(ctx context.Context, client *caller.Client, r caller.Request, marketURL string) (episode, error) {
	result, err := client.Do(ctx, r)
	if err != nil {
		return episode{}, err
	}
	e := episode{URL: r.URL, Call: result.CallID, CallURL: marketURL + "/api/v1/calls/" + result.CallID, Outcome: string(result.Outcome),
		Status: result.Status, Answer: string(result.Body)}
	if result.Quote == nil || result.Payment == nil {
		return e, fmt.Errorf("%s %s was not paid for: status %d: %s", r.Method, r.URL, result.Status, result.Body)
	}
	e.PriceUSD, e.PayTo, e.Settlement = result.Quote.USD, result.Quote.PayTo.Hex(), result.Payment.Transaction
	if result.Problem != nil {
		e.Reason = string(result.Problem.Code)
	}
	return e, nil
}

func awaitRefund(ctx context.Context, client *caller.Client, e *episode) error {
	waiting, cancel := context.WithTimeout(ctx, refundTime)
	defer cancel()
	record, err := client.AwaitRefund(waiting, e.CallURL)
	if err != nil {
		return err
	}
	if record.Refund != nil {
		e.RefundState, e.RefundTransaction = record.Refund.State, record.Refund.Transaction
	}
	return nil
}

func (w *world) balances(ctx context.Context) (balances, error) {
	var b balances
	for of, to := range map[common.Address]*decimal.Decimal{w.caller: &b.Caller, w.treasury: &b.Treasury} {
		units, err := w.chain.BalanceOf(ctx, of)
		if err != nil {
			return balances{}, err
		}
		*to = money.Amount.USD(units, devnet.TokenDecimals)
	}
	return b, nil
}

// addsUp says whether the chain shows what the story tells: the served call's price moved, and the refunded one's came back.
func (s *story) addsUp() bool {
	return s.Before.Caller.Sub(s.Served.PriceUSD).Equal(s.After.Caller) && s.Before.Treasury.Add(s.Served.PriceUSD).Equal(s.After.Treasury)
}

// check is what the exit code of --once says.
func (s *story) check() error {
	var errs []error
	if s.Served.Outcome != "served" || s.Served.Settlement == "" {
		errs = append(errs, fmt.Errorf("the first call was not served: %s (%s)", s.Served.Outcome, s.Served.Answer))
	}
	if s.Refunded.Outcome != "failed" || s.Refunded.RefundState != caller.RefundConfirmed {
		errs = append(errs, fmt.Errorf("the second call was not refunded: %s, refund %q", s.Refunded.Outcome, s.Refunded.RefundState))
	}
	if !s.AddsUp {
		errs = append(errs, errors.New("the balances on the chain do not add up"))
	}
	return errors.Join(errs...)
}

func (s *story) print(to io.Writer) error {
	e := json.NewEncoder(to)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(s)
}
