// Package secretbox seals what we keep and nobody but us may read: AES-256-GCM with keys from a file of the operator's.
//
// The first key of a Box seals; every key opens what it has sealed, so a new key is put in front and an old one is taken away once nothing
// sealed with it is left. What is sealed is bound to a context, which says what it is and whose: moved elsewhere, it does not open.
//
// Sealed bytes are: one byte for the format, 8 that name the key, 12 of a random nonce, the ciphertext, 16 of its tag. Random nonces
// are safe for 2^32 messages a key; an operator who seals a thousand a second changes the key every month.
//
// Units: sizes are bytes.
package secretbox
