package app

import (
	"context"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"

	"market/internal/chain"
	"market/internal/config"
	"market/internal/identity"
	"market/internal/secretbox"
	"market/internal/siwx"
)

// signIns is the sign-in of sellers: at the same address and on the same networks as that of callers.
func signIns(who siwx.Expect, open rails, box secretbox.Box) *identity.SignIns {
	return &identity.SignIns{Domain: who.Domain, Origin: who.Origin, ChainIDs: who.ChainIDs, Box: box, Wallets: walletsOn(open)}
}

// walletsOn asks contract wallets, each on the network that it is asked for.
type walletsOn rails

func (w walletsOn) Takes(ctx context.Context, chainID uint64, wallet common.Address, digest common.Hash, s chain.Signature) (bool, error) {
	for _, r := range w {
		if r.network.ChainID == chainID {
			return r.node.Takes(ctx, wallet, digest, s)
		}
	}
	return false, fmt.Errorf("there is no network with chain id %d", chainID) // the sign-in was checked for that
}

// applyAdmins makes the wallets of the configuration admins, and tells what that changed.
func (a *App) applyAdmins(ctx context.Context, wallets config.Wallets) error {
	listed := make([]common.Address, 0, len(wallets))
	for _, w := range wallets {
		if !identity.IsWallet(w) {
			return fmt.Errorf("MARKET_ADMIN_WALLETS: %s has a wrong checksum: a letter of it is another one", w)
		}
		listed = append(listed, common.HexToAddress(w))
	}
	var applied identity.Applied
	err := pgx.BeginFunc(ctx, a.db, func(tx pgx.Tx) (err error) {
		applied, err = identity.Store{}.Apply(ctx, tx, listed)
		return err
	})
	if err != nil {
		return err
	}
	for _, w := range applied.Granted {
		a.log.Info().Stringer("wallet", w).Msg("this wallet is an admin from now on, by MARKET_ADMIN_WALLETS")
	}
	for _, w := range applied.Revoked {
		a.log.Warn().Stringer("wallet", w).Msg("this wallet is no admin any more: MARKET_ADMIN_WALLETS does not name it")
	}
	for _, w := range applied.Withheld {
		a.log.Warn().Stringer("wallet", w).Msg("MARKET_ADMIN_WALLETS names a wallet that an admin has demoted: it stays so, until an admin makes it one again")
	}
	return nil
}
