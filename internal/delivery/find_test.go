package delivery

import (
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"market/internal/call"
)

func TestFind_FindsACallByWhatItsPayerKnows(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	served := s.asked(t).served()
	s.record(t, served)
	failed := s.refunded(t)
	s.exec(t, confirmedSQL, failed.Call)
	open, sent := s.claim(t), s.claim(t)
	named := common.HexToHash("0x5e17")
	s.write(t, `UPDATE calls SET sent_transaction = $2 WHERE id = $1`, sent.ID, named[:])
	payment := failed.Refund.Payment
	for what, tt := range map[string]struct {
		hash common.Hash
		want call.ID
	}{
		"the transaction of a payment":                     {payment.Transaction, failed.Call},
		"the nonce of a payment":                           {payment.Nonce, failed.Call},
		"the transaction of a refund":                      {common.HexToHash("0xc0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0"), failed.Call},
		"the nonce of an open payment":                     {open.Signed.Nonce, open.ID},
		"the transaction that an open payment was sent in": {named, sent.ID},
		"nothing that is known":                            {common.Hash{1}, call.ID{}},
	} {
		found, err := Find(t.Context(), s.db, []string{network}, tt.hash)
		if err != nil {
			t.Fatal(err)
		}
		if tt.want == (call.ID{}) {
			if len(found) != 0 {
				t.Errorf("%s: %+v", what, found)
			}
			continue
		}
		if len(found) != 1 || found[0].Call != tt.want {
			t.Errorf("%s: %+v, want call %s", what, found, tt.want)
		}
	}
}
