package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/spf13/cobra"

	"market/internal/chain"
)

// Environment of the provider commands.
const (
	providerKeyEnv   = "MARKET_PROVIDER_KEY"
	providerTokenEnv = "MARKET_PROVIDER_TOKEN"
)

// signedBytesMax bounds a text that is signed: it is one that a person can read.
const signedBytesMax = 16 << 10

// providerOptions are what all provider commands take.
type providerOptions struct {
	url     string
	keyFile string
	asJSON  bool
}

func newProviderCommand() *cobra.Command {
	var o providerOptions
	cmd := &cobra.Command{
		Use:   "provider",
		Short: "What a seller does: sign in, list services, make keys",
		Long: `Asks the API of a running server as a seller, whose wallet is the account.

With MARKET_PROVIDER_TOKEN, a session or an API key, it uses that. Else it signs in for the one command with the wallet's key, from --key-file or
MARKET_PROVIDER_KEY: 64 hexadecimal digits. The key signs a text that says so, and no payment.

Prints a table on a terminal, and JSON where the output is piped or --json is given.`,
		Args: cobra.NoArgs,
	}
	f := cmd.PersistentFlags()
	f.StringVar(&o.url, "url", "", "`address` of the server (default: MARKET_PUBLIC_URL, or http://127.0.0.1:4021)")
	f.StringVar(&o.keyFile, "key-file", "", "`file` with the wallet's private key in hexadecimal (default: MARKET_PROVIDER_KEY)")
	f.BoolVar(&o.asJSON, "json", false, "print JSON on a terminal too")
	cmd.AddCommand(newProviderSignInCommand(&o), newProviderSignCommand(&o), newProviderServicesCommand(&o), newProviderKeysCommand(&o))
	return cmd
}

// An openedSession is what a sign-in answers with.
type openedSession struct {
	Token     string          `json:"token"`
	ExpiresAt string          `json:"expires_at"`
	Account   json.RawMessage `json:"account"`
}

func newProviderSignInCommand(o *providerOptions) *cobra.Command {
	var draft keyDraft
	cmd := &cobra.Command{
		Use:   "sign-in",
		Short: "Sign in with a wallet's key and print a session, or an API key with --new-key",
		Long: `Signs in with a wallet's key and prints a session, which is good for 8 hours.

With --new-key it makes an API key, prints that, and ends the session. What is printed is a secret: whoever has it can do what it may.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, opened, err := o.signIn(cmd.Context())
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			if draft.Name == "" {
				if !forPeople(out, o.asJSON) {
					return printJSON(out, opened)
				}
				_, err := fmt.Fprintf(out, "%s\n", opened.Token)
				return err
			}
			made, err := client.makeKey(cmd.Context(), draft)
			if ended := client.signOut(cmd.Context()); err == nil {
				err = ended
			}
			if made != nil {
				err = errors.Join(printMadeKey(out, made, forPeople(out, o.asJSON)), err)
			}
			return err
		},
	}
	draft.flags(cmd, "new-key", "make an API key with this `name` and print it instead")
	return cmd
}

// walletKey reads the key that signs.
func (o *providerOptions) walletKey() (chain.Key, error) {
	return readKey(o.keyFile, providerKeyEnv, "sign in with")
}

// readKey reads a private key from a file, or from the environment where there is none. What for says in an error what it is missing for.
func readKey(file, env, whatFor string) (chain.Key, error) {
	text := os.Getenv(env)
	if file != "" {
		data, err := os.ReadFile(file)
		if err != nil {
			return chain.Key{}, fmt.Errorf("read the key: %w", err)
		}
		text = string(data)
	}
	if text == "" {
		return chain.Key{}, fmt.Errorf("no key to %s: give --key-file or set %s", whatFor, env)
	}
	key, err := chain.ParseKey(strings.TrimSpace(text))
	if err != nil {
		return chain.Key{}, fmt.Errorf("read the key: %w", err)
	}
	return key, nil
}

// signIn opens a session with the wallet's key.
func (o *providerOptions) signIn(ctx context.Context) (*apiClient, openedSession, error) {
	key, err := o.walletKey()
	if err != nil {
		return nil, openedSession{}, err
	}
	client, err := newAPIClient(o.url, "the signature of a sign-in")
	if err != nil {
		return nil, openedSession{}, err
	}
	var challenge struct{ Message string }
	if err := client.do(ctx, http.MethodPost, "/api/v1/auth/challenge", map[string]string{"address": key.Address().Hex()}, &challenge); err != nil {
		return nil, openedSession{}, err
	}
	if err := oursToSign(challenge.Message, client.base, key); err != nil {
		return nil, openedSession{}, err
	}
	signature, err := key.SignText(challenge.Message)
	if err != nil {
		return nil, openedSession{}, err
	}
	var opened openedSession
	signed := map[string]string{"message": challenge.Message, "signature": hexutil.Encode(signature.Bytes())}
	if err := client.do(ctx, http.MethodPost, "/api/v1/auth/session", signed, &opened); err != nil {
		return nil, openedSession{}, err
	}
	client.token = opened.Token
	return client, opened, nil
}

// oursToSign keeps a server from having anything else signed than a sign-in to itself with this wallet.
func oursToSign(message, base string, key chain.Key) error {
	_, host, _ := strings.Cut(base, "://")
	host, _, _ = strings.Cut(host, "/")
	begin := host + " wants you to sign in with your Ethereum account:\n" + key.Address().Hex() + "\n"
	if len(message) > signedBytesMax || !strings.HasPrefix(message, begin) {
		return fmt.Errorf("%s gave a text to sign that is no sign-in to %s with %s, so nothing was signed: ask the server by its public address", base, shown(host), key.Address().Hex())
	}
	return nil
}

// client asks as the seller. done ends what was opened for one command.
func (o *providerOptions) client(ctx context.Context) (client *apiClient, done func() error, err error) {
	if token := strings.TrimSpace(os.Getenv(providerTokenEnv)); token != "" {
		if client, err = newAPIClient(o.url, "a token"); err != nil {
			return nil, nil, err
		}
		client.token = token
		return client, func() error { return nil }, nil
	}
	if o.keyFile == "" && os.Getenv(providerKeyEnv) == "" {
		return nil, nil, fmt.Errorf("nobody is signed in: set %s, or give --key-file or %s to sign in for this command", providerTokenEnv, providerKeyEnv)
	}
	if client, _, err = o.signIn(ctx); err != nil {
		return nil, nil, err
	}
	return client, func() error { return client.signOut(ctx) }, nil
}

// as runs what one command asks for, and ends the session that was opened for it.
func (o *providerOptions) as(ctx context.Context, do func(*apiClient) error) error {
	client, done, err := o.client(ctx)
	if err != nil {
		return err
	}
	err = do(client)
	return errors.Join(err, done())
}

func (c *apiClient) signOut(ctx context.Context) error {
	return c.do(ctx, http.MethodDelete, "/api/v1/auth/session", nil, nil)
}

func newProviderSignCommand(o *providerOptions) *cobra.Command {
	return &cobra.Command{
		Use:   "sign [FILE]",
		Short: "Sign the text of a sign-in page with a wallet's key, and print the signature",
		Long: `Signs a text as wallets do (EIP-191): that of the sign-in page, from FILE or from stdin, without the line ends after it.

Read the text before you sign it: it says which site you sign in to.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			key, err := o.walletKey()
			if err != nil {
				return err
			}
			text, err := readInput(cmd, args, signedBytesMax)
			if err != nil {
				return err
			}
			message := strings.TrimRight(strings.ReplaceAll(string(text), "\r\n", "\n"), "\n")
			if !strings.Contains(message, " wants you to sign in with your Ethereum account:\n"+key.Address().Hex()+"\n") {
				return fmt.Errorf("this is no text that signs in with %s, so it is not signed", key.Address().Hex())
			}
			signature, err := key.SignText(message)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), hexutil.Encode(signature.Bytes()))
			return err
		},
	}
}

// readInput reads a file, or stdin where none is named, or "-" is.
func readInput(cmd *cobra.Command, args []string, limit int64) ([]byte, error) {
	in := cmd.InOrStdin()
	if len(args) > 0 && args[0] != "-" {
		f, err := os.Open(args[0])
		if err != nil {
			return nil, err
		}
		defer f.Close() //nolint:errcheck // it is only read
		in = f
	}
	text, err := io.ReadAll(io.LimitReader(in, limit+1))
	if err != nil {
		return nil, fmt.Errorf("read: %w", err)
	}
	if int64(len(text)) > limit {
		return nil, fmt.Errorf("it is longer than %d bytes", limit)
	}
	return text, nil
}

// expiryIn writes a lifetime as the API takes it.
func expiryIn(lasts time.Duration) string { return time.Now().Add(lasts).UTC().Format(time.RFC3339) }
