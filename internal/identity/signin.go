package identity

import (
	"context"
	"encoding/base32"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/jackc/pgx/v5"

	"market/internal/call"
	"market/internal/chain"
	"market/internal/eip4361"
	"market/internal/postgres"
	"market/internal/refusal"
	"market/internal/secretbox"
)

const (
	// ChallengeTime is how long a message can be signed and sent back.
	ChallengeTime = 10 * time.Minute
	// signInsMax is how many sign-ins of one network are taken in signInsKept, on all replicas together.
	signInsMax = 60
)

// Wallets asks a contract wallet, on a network by its chain id, whether a signature over a digest is its own (ERC-1271). An error is one of the network,
// and says nothing about the signature.
type Wallets interface {
	Takes(ctx context.Context, chainID uint64, wallet common.Address, digest common.Hash, s chain.Signature) (bool, error)
}

// A DB is what a sign-in needs: a pool.
type DB interface {
	postgres.DB
	Begin(ctx context.Context) (pgx.Tx, error)
}

// SignIns is the sign-in with a wallet. Nothing of a challenge is kept: its nonce carries, sealed, when and for whom we gave it out.
type SignIns struct {
	Domain   string   // host, and port where it is not the scheme's own
	Origin   string   // scheme://domain
	ChainIDs []uint64 // that we know; the first is what is meant where none is named, and the only one on which contract wallets speak
	Box      secretbox.Box
	Wallets  Wallets
	store    Store
}

// A Challenge is a message to sign.
type Challenge struct {
	Message string
	Nonce   string
	Expires time.Time
}

// A ChallengeDraft is for whom and on which chain a challenge is asked for.
type ChallengeDraft struct {
	Wallet  common.Address
	ChainID uint64 // 0: the first that we know
}

// ParseChallenge reads the body of a request for a challenge: {"address": "0x…", "chain_id": 8453}, the second optional.
func ParseChallenge(body []byte) (ChallengeDraft, error) {
	root, problems, err := openBody(body, "address", "chain_id")
	if err != nil {
		return ChallengeDraft{}, err
	}
	var d ChallengeDraft
	address := root.Members["address"].Text
	if !IsWallet(address) {
		problems = append(problems, refusal.Field{Name: "/address", Message: "must be 0x and 40 hexadecimal digits, all in one case or with the checksum of EIP-55"})
	}
	d.Wallet = common.HexToAddress(address)
	if root.Given("chain_id") {
		id, err := strconv.ParseUint(root.Members["chain_id"].Text, 10, 63)
		if err != nil || id == 0 {
			problems = append(problems, refusal.Field{Name: "/chain_id", Message: "must be a chain id such as 8453"})
		}
		d.ChainID = id
	}
	return d, refused(problems)
}

// IsWallet says whether a text is an address that somebody can hold the key of: of the right form, with a right checksum where it has one, and not zero.
func IsWallet(text string) bool {
	digits, ok := strings.CutPrefix(text, "0x")
	if !ok || len(digits) != 2*common.AddressLength || !common.IsHexAddress(text) {
		return false
	}
	address := common.HexToAddress(text)
	oneCase := digits == strings.ToLower(digits) || digits == strings.ToUpper(digits)
	return address != (common.Address{}) && (oneCase || address.Hex() == text)
}

// Challenge makes a message for a wallet to sign. It writes nothing.
func (s *SignIns) Challenge(ctx context.Context, db postgres.DB, d ChallengeDraft) (Challenge, error) {
	if d.ChainID == 0 {
		d.ChainID = s.ChainIDs[0]
	}
	if !slices.Contains(s.ChainIDs, d.ChainID) {
		return Challenge{}, refused([]refusal.Field{{Name: "/chain_id", Message: "is none of the networks that are used here: " + s.chains()}})
	}
	now, err := s.now(ctx, db)
	if err != nil {
		return Challenge{}, err
	}
	now = now.Truncate(time.Second)
	m := eip4361.Message{Domain: s.Domain, Address: d.Wallet, URI: s.Origin, Version: "1", ChainID: d.ChainID, IssuedAt: now.Format(time.RFC3339)}
	if m.Nonce, err = s.seal(now, d.Wallet, d.ChainID); err != nil {
		return Challenge{}, err
	}
	statement, expires := s.statement(), now.Add(ChallengeTime)
	until := expires.Format(time.RFC3339)
	m.Statement, m.ExpirationTime = &statement, &until
	return Challenge{Message: m.Text(), Nonce: m.Nonce, Expires: expires}, nil
}

// statement is what a wallet shows to whoever signs. A text with another one, such as that of a sign-in of a caller, opens no session: what it was signed for
// is something else.
func (s *SignIns) statement() string {
	return "Sign in to sell at " + s.Domain + ". This is no payment and costs nothing."
}

func (s *SignIns) chains() string {
	var all []string
	for _, id := range s.ChainIDs {
		all = append(all, strconv.FormatUint(id, 10))
	}
	return strings.Join(all, ", ")
}

const nowSQL = `SELECT market_now()`

func (s *SignIns) now(ctx context.Context, db postgres.DB) (now time.Time, err error) {
	if err = db.QueryRow(ctx, nowSQL).Scan(&now); err != nil {
		return time.Time{}, fmt.Errorf("read the time: %w", err)
	}
	return now.UTC(), nil
}

// nonceText has letters and digits only, as EIP-4361 asks for.
var nonceText = base32.StdEncoding.WithPadding(base32.NoPadding)

// seal makes a nonce that says when it was given out. It opens for the same wallet, chain and domain alone.
func (s *SignIns) seal(at time.Time, wallet common.Address, chainID uint64) (string, error) {
	sealed, err := s.Box.Seal(binary.BigEndian.AppendUint64(nil, uint64(at.Unix())), s.bound(wallet, chainID)) //nolint:gosec // after 1970
	if err != nil {
		return "", fmt.Errorf("make a nonce: %w", err)
	}
	return nonceText.EncodeToString(sealed), nil
}

func (s *SignIns) unseal(nonce string, wallet common.Address, chainID uint64) (time.Time, bool) {
	sealed, err := nonceText.DecodeString(nonce)
	if err != nil || nonceText.EncodeToString(sealed) != nonce {
		return time.Time{}, false // another spelling would be another nonce, and so a second use
	}
	plain, err := s.Box.Open(sealed, s.bound(wallet, chainID))
	if err != nil || len(plain) != 8 {
		return time.Time{}, false
	}
	return time.Unix(int64(binary.BigEndian.Uint64(plain)), 0).UTC(), true //nolint:gosec // we wrote it
}

func (s *SignIns) bound(wallet common.Address, chainID uint64) []byte {
	return fmt.Appendf(nil, "sign-in\n%s\n%d\n%s", wallet.Hex(), chainID, s.Domain)
}

// A SignInDraft is a message with the signature over it, as they came.
type SignInDraft struct {
	Message   string
	Signature []byte
	// Unseen says that the address of the request is not known to be the wallet's own: it is not remembered as one of the account's.
	Unseen bool
}

// ParseSignIn reads the body of a sign-in: {"message": "…", "signature": "0x…"}.
func ParseSignIn(body []byte) (SignInDraft, error) {
	root, problems, err := openBody(body, "message", "signature")
	if err != nil {
		return SignInDraft{}, err
	}
	message := root.Members["message"].Text
	if message == "" || len(message) > eip4361.TextBytesMax {
		problems = append(problems, refusal.Field{Name: "/message", Message: fmt.Sprintf("must be the text that was signed, of at most %d bytes", eip4361.TextBytesMax)})
	}
	signature, err := ReadSignature(root.Members["signature"].Text)
	if err != nil {
		problems = append(problems, refusal.Field{Name: "/signature", Message: err.Error()})
	}
	return SignInDraft{Message: message, Signature: signature}, refused(problems)
}

// ReadSignature reads a signature as wallets write it.
func ReadSignature(text string) ([]byte, error) {
	wrong := fmt.Errorf("must be 0x and %d to %d bytes in hexadecimal", chain.SignatureBytesMin, chain.SignatureBytesMax)
	if len(text) > 2+2*chain.SignatureBytesMax {
		return nil, wrong
	}
	raw, err := hexutil.Decode(text)
	if err != nil || len(raw) < chain.SignatureBytesMin {
		return nil, wrong
	}
	return raw, nil
}

// SignIn opens a session for a signature over a message of ours. The error is a refusal for unauthorized where the signature is not good for one, and for
// not_ready where the wallet is a contract and its network cannot be asked.
func (s *SignIns) SignIn(ctx context.Context, db DB, d SignInDraft, from netip.Addr) (Opened, error) {
	m, err := eip4361.Parse(d.Message)
	if err != nil {
		return Opened{}, no("the message is not the text of a challenge: %s", err)
	}
	now, err := s.now(ctx, db)
	if err != nil {
		return Opened{}, err
	}
	if err := s.isFor(m, now); err != nil {
		return Opened{}, err
	}
	signature, err := chain.ParseSignature(d.Signature)
	if err != nil {
		return Opened{}, no("the signature is none of a key (r, s, v) and none that a deployed contract wallet can judge")
	}
	if err := s.signed(ctx, m, signature); err != nil {
		return Opened{}, err
	}
	var opened Opened
	err = pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
		if err := s.store.useOnce(ctx, tx, m, from); err != nil {
			return err
		}
		account, err := s.store.enter(ctx, tx, m.Address)
		if err != nil {
			return err
		}
		if opened, err = s.store.open(ctx, tx, account); err != nil {
			return err
		}
		if d.Unseen {
			return nil
		}
		return s.store.Saw(ctx, tx, account.ID, from)
	})
	if err != nil {
		return Opened{}, err
	}
	return opened, nil
}

func no(format string, args ...any) *refusal.Error {
	return refusal.New(call.Unauthorized, format, args...)
}

// isFor keeps a signature that was given to another site, or at another time, from working here.
func (s *SignIns) isFor(m eip4361.Message, now time.Time) error {
	if m.Domain != s.Domain {
		return no("the domain of the message must be %s", s.Domain)
	}
	if origin, ok := eip4361.Origin(m.URI); !ok || origin != s.Origin {
		return no("the URI of the message must begin with %s", s.Origin)
	}
	if m.Statement == nil || *m.Statement != s.statement() {
		return no("the statement of the message must be that of the challenge: %s", s.statement())
	}
	if m.Version != "1" {
		return no("the version of the message must be 1")
	}
	if !slices.Contains(s.ChainIDs, m.ChainID) {
		return no("the chain id of the message is none of the networks that are used here: %s", s.chains())
	}
	given, ours := s.unseal(m.Nonce, m.Address, m.ChainID)
	if !ours {
		return no("the nonce was not given out here for this address and chain: ask for a challenge")
	}
	until := given.Add(ChallengeTime)
	if issued, ok := eip4361.Instant(m.IssuedAt); !ok || issued.Before(given.Add(-ChallengeTime)) || issued.After(until) {
		return no("the message must be issued when its challenge was")
	}
	if m.ExpirationTime != nil {
		expires, ok := eip4361.Instant(*m.ExpirationTime)
		if !ok {
			return no("the expiration time of the message cannot be read")
		}
		if expires.Before(until) {
			until = expires
		}
	}
	if !now.Before(until) {
		return no("the time of this message is over: ask for another challenge")
	}
	if m.NotBefore != nil {
		if at, ok := eip4361.Instant(*m.NotBefore); !ok || now.Before(at) {
			return no("the message is not valid yet")
		}
	}
	return nil
}

// signed says whether the address gave the signature: by its key, or where it is a contract by its own word. An address that has both is taken by
// either, as wallets that delegate their account (EIP-7702) have it.
//
// An account is an address and of no chain, and a key is the same everywhere. A contract is not: whoever owned a wallet once can often put it at the same
// address of another chain, with the owners of then. So contracts speak on one chain alone.
func (s *SignIns) signed(ctx context.Context, m eip4361.Message, signature chain.Signature) error {
	digest := m.Digest()
	if signer, err := chain.Recover(digest, signature); err == nil && signer == m.Address && signer != (common.Address{}) {
		return nil
	}
	if m.ChainID != s.ChainIDs[0] {
		return no("the signature is not that of the key of %s, and a contract wallet signs in on chain %d alone: ask for a challenge for it", m.Address.Hex(), s.ChainIDs[0])
	}
	takes, err := s.Wallets.Takes(ctx, m.ChainID, m.Address, digest, signature)
	if err != nil {
		return refusal.New(call.NotReady, "the network of this wallet cannot be asked now whether the signature is its own; try again").WithCause(err)
	}
	if !takes {
		return no("the signature is not that of %s over this message", m.Address.Hex())
	}
	return nil
}

// Of many at once, on whatever replica, one is the first. Each network gets so many rows for all the nonces that it asked for; those at the very same
// moment may be a few more.
const useOnceSQL = `
INSERT INTO sign_ins (nonce, wallet, network)
SELECT $1, $2, $3::cidr WHERE (SELECT count(*) FROM sign_ins WHERE network = $3::cidr AND at > market_now() - $4::interval) < $5
ON CONFLICT DO NOTHING`

const usedSQL = `
SELECT EXISTS (SELECT 1 FROM sign_ins WHERE nonce = $1), market_now()`

// errTooMany is a network that signed in as often as one may.
var errTooMany = errors.New("as many sign-ins of one network as there may be")

func (Store) useOnce(ctx context.Context, tx pgx.Tx, m eip4361.Message, from netip.Addr) error {
	tag, err := tx.Exec(ctx, useOnceSQL, m.Nonce, m.Address[:], call.Network(from), signInsKept, signInsMax)
	if err != nil {
		return fmt.Errorf("use nonce of %s: %w", m.Address, err)
	}
	if tag.RowsAffected() == 1 {
		return nil
	}
	var used bool
	var now time.Time
	if err := tx.QueryRow(ctx, usedSQL, m.Nonce).Scan(&used, &now); err != nil {
		return fmt.Errorf("use nonce of %s: %w", m.Address, err)
	}
	if used {
		return no("this message was used before: ask for another challenge")
	}
	return refusal.New(call.TooMany, "too many sign-ins from your network").WithUntil(now.Add(signInsKept / 4)).WithCause(errTooMany)
}

// The row is locked by this, so sessions of one account are opened one after the other.
const enterSQL = `
INSERT INTO accounts (id, wallet) VALUES ($1, $2) ON CONFLICT (wallet) DO UPDATE SET last_seen_at = market_now() RETURNING id`

// enter returns the account of a wallet that signed in, which it has from then on.
func (s Store) enter(ctx context.Context, tx pgx.Tx, wallet common.Address) (Account, error) {
	var id call.ID
	if err := tx.QueryRow(ctx, enterSQL, call.NewID(), wallet[:]).Scan(&id); err != nil {
		return Account{}, fmt.Errorf("enter account of %s: %w", wallet, err)
	}
	return s.ByID(ctx, tx, id)
}
