// Package siwx checks SIGN-IN-WITH-X: a header in which a wallet says, for this server and this moment, who it is. The wallet signs the text
// of EIP-4361; the header carries the text's members, and the text is built from them here, letter by letter.
//
//	FromHeaders     is there a sign-in?
//	Verify          is it for us, fresh, and signed by the address that it names?
//	Store.UseOnce   is it the first use of its nonce? Without this it could be sent again by whoever saw it.
//
// Signatures are those of plain accounts (EIP-191 personal_sign); contract wallets are not asked.
//
// Times are instants; the caller passes the present in. Sizes are bytes.
package siwx
