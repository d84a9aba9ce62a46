package identity_test

import (
	"context"
	"crypto/ecdsa"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/accounts"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/jackc/pgx/v5/pgxpool"

	"market/internal/call"
	"market/internal/chain"
	"market/internal/identity"
	"market/internal/postgres/pgtest"
	"market/internal/refusal"
	"market/internal/secretbox"
)

var home = netip.MustParseAddr("192.0.2.7")

// on is a wallet on a chain.
type on struct {
	chainID uint64
	wallet  common.Address
}

// contracts answers for contract wallets.
type contracts struct {
	takes map[on]bool
	err   error
	asked []uint64 // chain ids
}

func (c *contracts) Takes(_ context.Context, chainID uint64, wallet common.Address, _ common.Hash, _ chain.Signature) (bool, error) {
	c.asked = append(c.asked, chainID)
	return c.takes[on{chainID, wallet}], c.err
}

type door struct {
	*identity.SignIns
	db        *pgxpool.Pool
	contracts *contracts
	store     identity.Store
}

func newDoor(t *testing.T) *door {
	t.Helper()
	c := &contracts{takes: map[on]bool{}}
	return &door{db: pgtest.New(t), contracts: c, SignIns: &identity.SignIns{Domain: "shop.test", Origin: "https://shop.test", ChainIDs: []uint64{8453, 84532},
		Box: secretbox.RandomBox(), Wallets: c}}
}

func newKey(t *testing.T) (*ecdsa.PrivateKey, common.Address) {
	t.Helper()
	key, err := crypto.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	return key, crypto.PubkeyToAddress(key.PublicKey)
}

func sign(t *testing.T, key *ecdsa.PrivateKey, message string) []byte {
	t.Helper()
	signature, err := crypto.Sign(accounts.TextHash([]byte(message)), key)
	if err != nil {
		t.Fatal(err)
	}
	return signature
}

func (d *door) challenge(t *testing.T, wallet common.Address) string {
	t.Helper()
	made, err := d.Challenge(t.Context(), d.db, identity.ChallengeDraft{Wallet: wallet})
	if err != nil {
		t.Fatal(err)
	}
	return made.Message
}

func (d *door) enter(t *testing.T, message string, signature []byte) (identity.Opened, error) {
	t.Helper()
	return d.SignIn(t.Context(), d.db, identity.SignInDraft{Message: message, Signature: signature}, home)
}

func (d *door) entered(t *testing.T, key *ecdsa.PrivateKey) identity.Opened {
	t.Helper()
	message := d.challenge(t, crypto.PubkeyToAddress(key.PublicKey))
	opened, err := d.enter(t, message, sign(t, key, message))
	if err != nil {
		t.Fatal(err)
	}
	return opened
}

func reasonOf(err error) call.Reason {
	no, _ := errors.AsType[*refusal.Error](err)
	if no == nil {
		return ""
	}
	return no.Reason
}

func (d *door) count(t *testing.T, table string) (n int) {
	t.Helper()
	if err := d.db.QueryRow(t.Context(), "SELECT count(*) FROM "+table).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestSignIn_AKeyOpensASessionOfItsOneAccount(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	key, wallet := newKey(t)
	first, second := d.entered(t, key), d.entered(t, key)
	if first.Account.ID != second.Account.ID || first.Account.Wallet != wallet || first.Token.Reveal() == second.Token.Reveal() {
		t.Errorf("%+v, then %+v", first, second)
	}
	p, ok, err := d.store.OfSession(t.Context(), d.db, first.Token.Reveal())
	if err != nil || !ok || p.Account != first.Account.ID || p.Wallet != wallet || p.Kind != identity.Session || p.Admin || !p.Expires.Equal(first.Expires) {
		t.Errorf("%+v, %v, %v", p, ok, err)
	}
	var plain int
	if err := d.db.QueryRow(t.Context(), `SELECT count(*) FROM sessions s WHERE s::text LIKE '%' || $1 || '%'`, first.Token.Reveal()).Scan(&plain); err != nil || plain != 0 {
		t.Errorf("the token stands in %d rows, %v", plain, err)
	}
	if fmt.Sprintf("%v %+v", first, first) != strings.ReplaceAll(fmt.Sprintf("%v %+v", first, first), first.Token.Reveal(), "") {
		t.Error("a session that is printed shows its token")
	}
}

// Nothing is kept of whoever only asks for messages.
func TestChallenge_WritesNothing(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	_, wallet := newKey(t)
	if a, b := d.challenge(t, wallet), d.challenge(t, wallet); a == b {
		t.Error("two challenges are one")
	}
	for _, table := range []string{"accounts", "sign_ins", "sessions", "account_addresses"} {
		if n := d.count(t, table); n != 0 {
			t.Errorf("%d rows in %s", n, table)
		}
	}
	for name, draft := range map[string]identity.ChallengeDraft{"a chain that is not ours": {Wallet: wallet, ChainID: 1}} {
		if _, err := d.Challenge(t.Context(), d.db, draft); reasonOf(err) != call.InvalidRequest {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSignIn_OfManyAtOnceWithOneMessageOneIsTaken(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	key, wallet := newKey(t)
	message := d.challenge(t, wallet)
	signature := sign(t, key, message)
	var wg sync.WaitGroup
	results := make([]error, 20)
	for i := range results {
		wg.Go(func() {
			_, results[i] = d.SignIn(t.Context(), d.db, identity.SignInDraft{Message: message, Signature: signature}, home)
		})
	}
	wg.Wait()
	taken := 0
	for _, err := range results {
		if err == nil {
			taken++
		} else if reasonOf(err) != call.Unauthorized {
			t.Errorf("%v", err)
		}
	}
	if n := d.count(t, "sessions"); taken != 1 || n != 1 {
		t.Errorf("%d were taken, %d sessions", taken, n)
	}
}

func TestSignIn_TakesOnlyAFreshMessageOfOursForThisWallet(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	key, wallet := newKey(t)
	other, stranger := newKey(t)
	fresh := func() string { return d.challenge(t, wallet) }
	swap := func(old, with string) func() string {
		return func() string {
			message := fresh()
			changed := strings.Replace(message, old, with, 1)
			if changed == message {
				t.Fatalf("%q is not in %q", old, message)
			}
			return changed
		}
	}
	for name, tt := range map[string]struct {
		message func() string
		signer  *ecdsa.PrivateKey
	}{
		"another's signature":            {fresh, other},
		"another domain":                 {swap("shop.test wants", "evil.test wants"), key},
		"another site's URI":             {swap("URI: https://shop.test", "URI: https://evil.test"), key},
		"a URI that begins like ours":    {swap("URI: https://shop.test", "URI: https://shop.test.evil.test"), key},
		"another version":                {swap("Version: 1", "Version: 2"), key},
		"another chain of ours":          {swap("Chain ID: 8453", "Chain ID: 84532"), key},
		"a chain of nobody":              {swap("Chain ID: 8453", "Chain ID: 1"), key},
		"a nonce of its own":             {swap("Nonce: ", "Nonce: A"), key},
		"a nonce given to another":       {func() string { return strings.Replace(d.challenge(t, stranger), stranger.Hex(), wallet.Hex(), 1) }, key},
		"an expiration that has passed":  {swap("\nExpiration Time: ", "\nExpiration Time: 1999-01-01T00:00:00Z\nRequest ID: "), key},
		"a time that has not come":       {func() string { return fresh() + "\nNot Before: 2999-01-01T00:00:00Z" }, key},
		"an issue of another year":       {swap("Issued At: 2", "Issued At: 1"), key},
		"a line of its own":              {func() string { return fresh() + "\nAdmin: yes" }, key},
		"a line end after it":            {func() string { return fresh() + "\n" }, key},
		"an address in another spelling": {func() string { return strings.Replace(fresh(), wallet.Hex(), strings.ToLower(wallet.Hex()), 1) }, key},
		"another statement":              {swap("Sign in to sell", "Read my purchases"), key},
		"no statement":                   {func() string { return withoutStatement(fresh()) }, key},
		"no message":                     {func() string { return "hello" }, key},
		"a nonce in another case":        {func() string { return lowerNonce(fresh()) }, key},
	} {
		message := tt.message()
		if _, err := d.enter(t, message, sign(t, tt.signer, message)); reasonOf(err) != call.Unauthorized {
			t.Errorf("%s: %v", name, err)
		}
	}
	message := fresh()
	for name, signature := range map[string][]byte{"a signature that is cut": sign(t, key, message)[:64], "none": {}, "a long one": make([]byte, 4096), "zeros": make([]byte, 65)} {
		if _, err := d.enter(t, message, signature); reasonOf(err) != call.Unauthorized {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := d.count(t, "accounts") + d.count(t, "sign_ins"); n != 0 {
		t.Errorf("%d rows were kept of what was refused", n)
	}
	if _, err := d.enter(t, message, sign(t, key, message)); err != nil {
		t.Errorf("the message itself after all that: %v", err)
	}
}

func withoutStatement(message string) string {
	before, rest, _ := strings.Cut(message, "Sign in to sell")
	_, after, _ := strings.Cut(rest, "\n")
	return before + after
}

func lowerNonce(message string) string {
	before, rest, _ := strings.Cut(message, "Nonce: ")
	nonce, after, _ := strings.Cut(rest, "\n")
	return before + "Nonce: " + strings.ToLower(nonce) + "\n" + after
}

func TestSignIn_AMessageIsGoodForTenMinutesOfMarketTime(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	pgtest.Freeze(t, d.db)
	key, wallet := newKey(t)
	early, late := d.challenge(t, wallet), d.challenge(t, wallet)
	pgtest.Shift(t, d.db, identity.ChallengeTime-2*time.Second)
	if _, err := d.enter(t, early, sign(t, key, early)); err != nil {
		t.Errorf("just before: %v", err)
	}
	pgtest.Shift(t, d.db, 2*time.Second)
	if _, err := d.enter(t, late, sign(t, key, late)); reasonOf(err) != call.Unauthorized {
		t.Errorf("just after: %v", err)
	}
}

func TestSignIn_AContractWalletSpeaksForItselfOnTheFirstChain(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	owner, wallet := newKey(t)
	contract := common.HexToAddress("0x00000000000000000000000000000000000c0de1")
	message := d.challenge(t, contract)
	signature := append(sign(t, owner, message), make([]byte, 100)...)
	if _, err := d.enter(t, message, signature); reasonOf(err) != call.Unauthorized {
		t.Errorf("the wallet says no: %v", err)
	}
	d.contracts.err = errors.New("the node is out")
	if _, err := d.enter(t, message, signature); reasonOf(err) != call.NotReady {
		t.Errorf("the node cannot be asked: %v", err)
	}
	d.contracts.err, d.contracts.takes[on{8453, contract}] = nil, true
	if opened, err := d.enter(t, message, signature); err != nil || opened.Account.Wallet != contract {
		t.Errorf("the wallet says yes: %+v, %v", opened, err)
	}
	n := len(d.contracts.asked)
	d.contracts.err = errors.New("the node is out")
	message = d.challenge(t, wallet)
	if _, err := d.enter(t, message, sign(t, owner, message)); err != nil || len(d.contracts.asked) != n {
		t.Errorf("a key needs no node: %v, asked %d times", err, len(d.contracts.asked)-n)
	}
}

// Who owned a contract wallet once can put it at its address of another chain, where it says yes to them. A key is the same on each.
func TestSignIn_AContractWalletOfAnotherChainIsNobody(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	owner, wallet := newKey(t)
	contract := common.HexToAddress("0x00000000000000000000000000000000000c0de1")
	d.contracts.takes[on{84532, contract}] = true
	elsewhere := func(of common.Address) string {
		t.Helper()
		made, err := d.Challenge(t.Context(), d.db, identity.ChallengeDraft{Wallet: of, ChainID: 84532})
		if err != nil {
			t.Fatal(err)
		}
		return made.Message
	}
	for name, message := range map[string]string{"the chain on which it says yes": elsewhere(contract), "the chain on which it says no": d.challenge(t, contract)} {
		_, err := d.enter(t, message, append(sign(t, owner, message), make([]byte, 100)...))
		if reasonOf(err) != call.Unauthorized {
			t.Errorf("%s: %v", name, err)
		}
		if strings.Contains(name, "yes") && !strings.Contains(err.Error(), "on chain 8453 alone") {
			t.Errorf("%s: %v does not say where it can sign in", name, err)
		}
	}
	if len(d.contracts.asked) != 1 || d.contracts.asked[0] != 8453 || d.count(t, "accounts") != 0 {
		t.Errorf("chains %v were asked, %d accounts", d.contracts.asked, d.count(t, "accounts"))
	}
	message := elsewhere(wallet)
	if _, err := d.enter(t, message, sign(t, owner, message)); err != nil {
		t.Errorf("a key: %v", err)
	}
}

func TestSignIn_OneNetworkOpensSoManyAndAnotherOneGoesOn(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	key, wallet := newKey(t)
	var refused error
	for n := 0; refused == nil && n <= identity.SignInsMax; n++ {
		message := d.challenge(t, wallet)
		_, refused = d.enter(t, message, sign(t, key, message))
	}
	if n := d.count(t, "sign_ins"); reasonOf(refused) != call.TooMany || n != identity.SignInsMax {
		t.Errorf("%v after %d", refused, n)
	}
	if n := d.count(t, "sessions"); n != identity.SessionsMax {
		t.Errorf("the account has %d sessions, want %d: the oldest make room", n, identity.SessionsMax)
	}
	message := d.challenge(t, wallet)
	if _, err := d.SignIn(t.Context(), d.db, identity.SignInDraft{Message: message, Signature: sign(t, key, message)}, netip.MustParseAddr("198.51.100.1")); err != nil {
		t.Errorf("another network: %v", err)
	}
}

func TestParse_TellsEverythingThatIsWrongWithABody(t *testing.T) {
	t.Parallel()
	parse := map[string]func(string) error{
		"challenge": func(b string) error { _, err := identity.ParseChallenge([]byte(b)); return err },
		"sign-in":   func(b string) error { _, err := identity.ParseSignIn([]byte(b)); return err },
		"key":       func(b string) error { _, err := identity.ParseKeyDraft([]byte(b)); return err },
	}
	good := "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"
	for of, bodies := range map[string]map[string]int{
		"challenge": {
			`{"address": "` + good + `"}`: 0, `{"address": "` + strings.ToLower(good) + `", "chain_id": 8453}`: 0,
			`{"address": "0x70997970c51812dc3A010C7d01b50e0d17dc79C8"}`: 1, // one letter in another case
			`{"address": "0x0000000000000000000000000000000000000000"}`: 1, `{}`: 1, `{"address": 7, "chain_id": "x", "more": 1}`: 3, `{"address": "` + good + `", "chain_id": -1}`: 1,
		},
		"sign-in": {`{"message": "m", "signature": "0x` + strings.Repeat("00", 65) + `"}`: 0, `{"message": "", "signature": "0x00"}`: 2, `{"message": "` + strings.Repeat("m", 5000) + `", "signature": "zz"}`: 2},
		"key": {
			`{"name": "deploy", "scopes": ["services:write"]}`: 0, `{"name": "deploy", "scopes": ["services:write", "account:read"], "expires_at": "2027-01-31T12:00:00Z"}`: 0,
			`{"name": "", "scopes": []}`: 2, `{"name": "a\u0007b", "scopes": ["admin"], "expires_at": "soon"}`: 3, `{"name": "x", "scopes": ["services:write", "services:write"]}`: 1,
		},
	} {
		for body, want := range bodies {
			err := parse[of](body)
			no, _ := errors.AsType[*refusal.Error](err)
			if want == 0 && err != nil || want > 0 && (no == nil || no.Reason != call.InvalidRequest || len(no.Fields) != want) {
				t.Errorf("%s %s: %+v, want %d problems", of, body, no, want)
			}
		}
		for _, body := range []string{"", "null", "[]", `{"a": 1, "a": 2}`, "{", strings.Repeat(" ", 20<<10) + "{}"} {
			if err := parse[of](body); reasonOf(err) != call.InvalidRequest {
				t.Errorf("%s %.20q: %v", of, body, err)
			}
		}
	}
}

// An address that is not known to be the wallet's own may be the whole world's: calls from there would all be its account's.
func TestSignIn_AnAddressThatIsNotItsOwnIsNotRemembered(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	key, wallet := newKey(t)
	for want, unseen := range []bool{true, false} {
		message := d.challenge(t, wallet)
		draft := identity.SignInDraft{Message: message, Signature: sign(t, key, message), Unseen: unseen}
		if _, err := d.SignIn(t.Context(), d.db, draft, home); err != nil {
			t.Fatal(err)
		}
		if n := d.count(t, "account_addresses"); n != want {
			t.Errorf("unseen %v: %d addresses, want %d", unseen, n, want)
		}
	}
}
