package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"time"
	"unicode"

	"github.com/ethereum/go-ethereum/common"
	"github.com/spf13/cobra"

	"market/internal/payment"
)

// receiptBytesMax is more than any document with a receipt in it has.
const receiptBytesMax = 1 << 20

var signerForm = regexp.MustCompile(`^0x[0-9a-fA-F]{40}$`)

func newVerifyReceiptCommand() *cobra.Command {
	var signer string
	cmd := &cobra.Command{
		Use:   "verify-receipt FILE",
		Short: "Check a signed receipt, without any network",
		Long: `Reads a signed receipt as JSON from FILE, or from standard input where FILE is -, and says who signed it and what it says.

It takes the receipt of a served call (x402 offer-receipt), the outcome receipt of a call that was paid for and not served,
and signed terms; by itself, or in the document that it came in: a call's record (GET /api/v1/calls/{id}), a problem document,
or the content of PAYMENT-RESPONSE after base64.

A signature proves who signed and nothing more. Give the wallet that you paid, payTo of the terms, as --signer.

Exit status: 0 the signature holds, and is of --signer where that is given; 1 anything else.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			document, err := readReceipt(cmd.InOrStdin(), args[0])
			if err != nil {
				return err
			}
			return verifyReceipt(cmd.OutOrStdout(), document, signer)
		},
	}
	cmd.Flags().StringVar(&signer, "signer", "", "the `address` that has to have signed it")
	return cmd
}

func readReceipt(stdin io.Reader, file string) ([]byte, error) {
	from := stdin
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return nil, fmt.Errorf("read the receipt: %w", err)
		}
		defer f.Close() //nolint:errcheck // it was only read
		from = f
	}
	document, err := io.ReadAll(io.LimitReader(from, receiptBytesMax+1))
	if err != nil {
		return nil, fmt.Errorf("read the receipt: %w", err)
	}
	return document, nil
}

func verifyReceipt(out io.Writer, document []byte, signer string) error {
	if signer != "" && !signerForm.MatchString(signer) {
		return fmt.Errorf("--signer %q is no address", signer)
	}
	s, err := payment.ReadSigned(document)
	if err != nil {
		return fmt.Errorf("not a receipt that can be checked: %w", err)
	}
	who, err := s.Signer()
	if err != nil {
		return fmt.Errorf("the signature does not hold: %w", err)
	}
	if signer != "" && who != common.HexToAddress(signer) {
		return fmt.Errorf("signed by %s, not by %s; or it was changed after it was signed", who, common.HexToAddress(signer))
	}
	lines := [][2]string{{"signed by", who.Hex()}}
	switch p := s.Payload.(type) {
	case payment.Receipt:
		lines = append(lines, receiptInWords(p)...)
	case payment.OutcomeReceipt:
		lines = append(lines, outcomeInWords(p, who)...)
	case payment.SignedTerms:
		if signer == "" && !strings.EqualFold(p.PayTo, who.Hex()) {
			return fmt.Errorf("signed by %s, which is not the wallet that the terms pay to (%s)", who, shown(p.PayTo))
		}
		lines = append(lines, termsInWords(p)...)
	default:
		return errors.New("not a receipt that can be checked")
	}
	if signer == "" {
		lines = append(lines, [2]string{"note", "compare the signer with the wallet that was paid, or give that as --signer"})
	}
	for _, line := range lines {
		if _, err := fmt.Fprintf(out, "%-10s %s\n", line[0], line[1]); err != nil {
			return fmt.Errorf("print: %w", err)
		}
	}
	return nil
}

func receiptInWords(r payment.Receipt) [][2]string {
	lines := [][2]string{
		{"says", fmt.Sprintf("%s paid for a call of %s on %s, and was served", shown(r.Payer), shown(r.ResourceURL), shown(r.Network))},
		{"at", moment(r.IssuedAt)},
	}
	if r.Transaction != "" {
		lines = append(lines, [2]string{"paid by", "transaction " + shown(r.Transaction)})
	}
	return lines
}

func outcomeInWords(r payment.OutcomeReceipt, signer common.Address) [][2]string {
	lines := [][2]string{
		{"says", fmt.Sprintf("the call %s of %s by %s on %s was not served: %s (%s)", shown(r.Call), shown(r.ResourceURL), shown(r.Payer),
			shown(r.Network), shown(r.Outcome), shown(r.Reason))},
		{"at", moment(r.IssuedAt)},
	}
	if r.Transaction != "" {
		lines = append(lines, [2]string{"paid by", fmt.Sprintf("transaction %s: %s base units of %s", shown(r.Transaction), shown(r.Amount), shown(r.Asset))})
	}
	switch r.RefundState {
	case payment.RefundOwed:
		return append(lines,
			[2]string{"refund", fmt.Sprintf("%s base units of %s are owed to %s", shown(r.Amount), shown(r.Asset), shown(r.Payer))},
			[2]string{"paid back", fmt.Sprintf("if authorizationState(%s, %s) of %s on %s is true", signer, shown(r.RefundNonce), shown(r.Asset), shown(r.Network))})
	case payment.RefundNone:
		return append(lines, [2]string{"refund", "none is owed, because no money moved"})
	case payment.RefundVoid:
		return append(lines, [2]string{"refund", "none is owed, because the chain itself took the payment back"})
	}
	return append(lines, [2]string{"refund", shown(r.RefundState)})
}

func termsInWords(t payment.SignedTerms) [][2]string {
	return [][2]string{
		{"says", fmt.Sprintf("a call of %s costs %s base units of %s on %s, to be paid to %s", shown(t.ResourceURL), shown(t.Amount),
			shown(t.Asset), shown(t.Network), shown(t.PayTo))},
		{"until", moment(t.ValidUntil)},
	}
}

// moment is a time in Unix seconds, as far as it is one.
func moment(seconds uint64) string {
	const latest = 253402300799 // the end of the year 9999
	if seconds > latest {
		return fmt.Sprintf("%d seconds after 1970", seconds)
	}
	return time.Unix(int64(seconds), 0).UTC().Format(time.RFC3339)
}

// shown keeps what stands in a receipt from moving the cursor of the terminal that shows it, or from looking like more lines than one.
func shown(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, s)
}
