package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/shopspring/decimal"
	"github.com/spf13/cobra"

	"market/internal/caller"
)

// Exit codes of `market call`, on which scripts rely; every other error is exitFailure.
const (
	exitRefused = 3
	exitFailed  = 4
	exitPending = 5
)

// An exitError ends the program with a code. The error is nil where everything has been said already.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

type callOptions struct {
	url       string
	method    string
	body      string
	hasBody   bool
	headers   []string
	keyFile   string
	yes       bool
	maxUSD    string
	wait      time.Duration
	payment   string
	in        io.Reader
	out, tell io.Writer // the body goes to out, everything about it to tell
}

func newCallCommand() *cobra.Command {
	var o callOptions
	cmd := &cobra.Command{
		Use:   "call URL",
		Short: "Pay for one call and print its answer",
		Long: `Asks URL and, where the answer is 402, shows the price, asks whether to pay it, pays, and asks again.

The payer's key is read from --key-file, or from MARKET_CALLER_KEY: 64 hexadecimal digits.
The body is printed on stdout, of a stream as it comes; receipt, outcome and refund on stderr.

Exit status: 0 served, 3 refused, 4 failed and refunded, 5 pending, 1 anything else.
A stream that breaks off has failed, and its record is asked for the refund.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.url, o.hasBody = args[0], cmd.Flags().Changed("data")
			o.in, o.out, o.tell = cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr()
			return o.run(cmd.Context())
		},
	}
	f := cmd.Flags()
	f.StringVarP(&o.method, "request", "X", "", "method (default GET, or POST with a body)")
	f.StringVarP(&o.body, "data", "d", "", "body; sent as application/json if it is JSON and no header says otherwise")
	f.StringArrayVarP(&o.headers, "header", "H", nil, "header as `\"Name: value\"`; may be repeated")
	f.StringVar(&o.keyFile, "key-file", "", "`file` with the payer's private key in hexadecimal (default: MARKET_CALLER_KEY)")
	f.BoolVar(&o.yes, "yes", false, "pay without asking, up to --max-usd, or 1 USD without it")
	f.StringVar(&o.maxUSD, "max-usd", "", "pay up to this `price` without asking, and nothing above it")
	f.DurationVar(&o.wait, "wait", 15*time.Second, "how long to wait for the refund of a failed call; 0 does not wait")
	f.StringVar(&o.payment, "payment", "", "send this `payment` again instead of signing one; a pending call prints it")
	return cmd
}

func (o *callOptions) run(ctx context.Context) error {
	request, err := o.request()
	if err != nil {
		return err
	}
	client, err := o.client()
	if err != nil {
		return err
	}
	var result *caller.Result
	if o.payment != "" {
		result, err = client.DoWith(ctx, request, o.payment)
	} else {
		result, err = client.Do(ctx, request)
	}
	if unclear, ok := errors.AsType[*caller.UnclearError](err); ok {
		o.sayHowToAskAgain(unclear.PaymentHeader, "")
		return &exitError{exitPending, err}
	}
	if err != nil {
		return err
	}
	if _, err := o.out.Write(result.Body); err != nil {
		return fmt.Errorf("print the answer: %w", err)
	}
	return o.report(ctx, client, result)
}

func (o *callOptions) request() (caller.Request, error) {
	u, err := url.Parse(o.url)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return caller.Request{}, fmt.Errorf("%q is no http or https URL", o.url)
	}
	r := caller.Request{Method: o.method, URL: o.url, Header: http.Header{}}
	for _, line := range o.headers {
		name, value, ok := strings.Cut(line, ":")
		if !ok || strings.TrimSpace(name) == "" {
			return caller.Request{}, fmt.Errorf("header %q is not of the form \"Name: value\"", line)
		}
		r.Header.Add(strings.TrimSpace(name), strings.TrimSpace(value))
	}
	if o.hasBody {
		r.Body = []byte(o.body)
		if r.Method == "" {
			r.Method = http.MethodPost
		}
		if r.Header.Get("Content-Type") == "" && json.Valid(r.Body) {
			r.Header.Set("Content-Type", "application/json")
		}
	}
	if r.Method == "" {
		r.Method = http.MethodGet
	}
	return r, nil
}

func (o *callOptions) client() (*caller.Client, error) {
	client := &caller.Client{Stream: o.out}
	if o.maxUSD != "" {
		limit, err := decimal.NewFromString(o.maxUSD)
		if err != nil || !limit.IsPositive() || limit.Exponent() < -18 || limit.Exponent() > 18 {
			return nil, fmt.Errorf("--max-usd %q is no price above zero", o.maxUSD)
		}
		client.MaxUSD = limit
	} else if !o.yes {
		client.Confirm = o.confirm
	}
	if o.payment != "" {
		return client, nil // it is signed already
	}
	var err error
	if client.Key, err = readKey(o.keyFile, "MARKET_CALLER_KEY", "pay with"); err != nil {
		return nil, err
	}
	return client, nil
}

// confirm shows the price and reads the answer of a person. Nothing that is not a terminal, or a reader that a test brings, can say yes.
func (o *callOptions) confirm(q caller.Quote) (bool, error) {
	o.say("price", "%s", q)
	if q.Description != "" {
		o.say("for", "%s", q.Description)
	}
	if f, ok := o.in.(*os.File); ok {
		if info, err := f.Stat(); err != nil || info.Mode()&os.ModeCharDevice == 0 {
			return false, errors.New("nobody can be asked whether to pay, because stdin is no terminal: give --yes or --max-usd")
		}
	}
	_, _ = fmt.Fprint(o.tell, "Pay? [y/N] ") //nolint:errcheck // a person who can not read it does not say yes
	line, err := bufio.NewReader(io.LimitReader(o.in, 64)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return false, fmt.Errorf("read the answer: %w", err)
	}
	answer := strings.ToLower(strings.TrimSpace(line))
	return answer == "y" || answer == "yes", nil
}
