package desk

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"market/internal/payment"
)

var (
	curlBody  = regexp.MustCompile(`(?s)/verify -H "Authorization: Bearer \$TOKEN".* -d '(\{.*?\n\})'\n`)
	jsonBlock = regexp.MustCompile("(?s)```json\n(.*?)\n```")
)

func readDoc(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/facilitator.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestDocs_TheExampleAnswersAsPrinted(t *testing.T) {
	t.Parallel()
	text := readDoc(t)
	body, want := curlBody.FindStringSubmatch(text), jsonBlock.FindStringSubmatch(text)
	if body == nil || want == nil {
		t.Fatal("the document has no example with its answer")
	}
	g := newGround(t)
	k := g.shopKey()
	k.Recipients = []common.Address{common.HexToAddress("0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC")}
	url := g.desk(t, nil, k)
	if a := ask(t, url+"/verify", body[1]); a.raw != want[1] {
		t.Errorf("the answer is\n%s\nprinted is\n%s", a.raw, want[1])
	}
	// The account of the example has nothing on this chain.
	fits := strings.Replace(body[1], `"amount":"20000"`, `"amount":"12345"`, 1)
	if a := ask(t, url+"/verify", fits); a.code() != string(codeBalance) {
		t.Errorf("with the amount that was signed: %s, want %s", a.raw, codeBalance)
	}
}

func TestDocs_EveryCodeIsInTheTable(t *testing.T) {
	t.Parallel()
	text := readDoc(t)
	for _, code := range []payment.Code{
		codeScheme, codeNetwork, codeBalance, codeUnauthorized, codeRate, codeRecipient, payment.CodeDomainMissing,
		payment.CodeDomainName, payment.CodeNetwork, payment.CodeRequirements, payment.CodeSignature, payment.CodeRecipient, payment.CodeValue,
		payment.CodeValidAfter, payment.CodeValidBefore, payment.CodePending, payment.CodeDuplicate,
		codeTransfer, payment.CodeUndeployed, payment.CodeUndeployed.In(payment.V1), payment.CodeFailed,
		"invalid_exact_evm_nonce_already_used", "invalid_exact_evm_transaction_simulation_failed",
	} {
		if !strings.Contains(text, "`"+string(code)+"`") {
			t.Errorf("docs/facilitator.md does not explain %s", code)
		}
	}
}
