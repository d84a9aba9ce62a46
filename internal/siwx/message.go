package siwx

import "market/internal/eip4361"

// A message is what the wallet signed, in members. A nil one was left out.
type message = eip4361.Message
