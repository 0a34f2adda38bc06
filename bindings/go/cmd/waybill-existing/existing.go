package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"
)

// A uid of 128 bits. The API server gives each object a random one, and never one twice.
type uid [16]byte

// existing is what a cluster has, listed after asOf.
type existing struct {
	asOf            time.Time
	secrets         []uid
	serviceAccounts []uid
}

// A ConfigMap holds 1 MiB.
const (
	headBytes      = 72
	mostBytes      = 1 << 20
	mostUIDs       = (mostBytes - headBytes) / len(uid{})
	formatVersion  = 1
	formatName     = "waybill-existing"
	configMapEntry = "existing"
)

// parseUID reads the form 8-4-4-4-12 in lower-case hex, the only one that nodes compare.
func parseUID(text string) (uid, error) {
	var id uid
	if len(text) != 36 || text[8] != '-' || text[13] != '-' || text[18] != '-' || text[23] != '-' {
		return id, fmt.Errorf("the UID %.64q is no UUID", text)
	}
	digits := text[:8] + text[9:13] + text[14:18] + text[19:23] + text[24:]
	if _, err := hex.Decode(id[:], []byte(digits)); err != nil || hex.EncodeToString(id[:]) != digits {
		return id, fmt.Errorf("the UID %.64q is no UUID in lower case", text)
	}
	return id, nil
}

// rising sorts, and leaves out what is there twice.
func rising(ids []uid) []uid {
	slices.SortFunc(ids, func(a, b uid) int { return bytes.Compare(a[:], b[:]) })
	return slices.Compact(ids)
}

// encode writes the format that bindings/cli/published_list.h describes. Sorts what there is.
func (e *existing) encode() ([]byte, error) {
	e.secrets, e.serviceAccounts = rising(e.secrets), rising(e.serviceAccounts)
	if len(e.serviceAccounts) == 0 {
		return nil, errors.New("the API server shows no service account at all, and every namespace has one")
	}
	if count := len(e.secrets) + len(e.serviceAccounts); count > mostUIDs {
		return nil, fmt.Errorf("there are %d pull Secrets and %d service accounts, and a ConfigMap holds %d UIDs: "+
			"use `waybill reconcile --existing` on the nodes", len(e.secrets), len(e.serviceAccounts), mostUIDs)
	}
	out := []byte(formatName)
	for _, number := range []int{formatVersion, len(e.secrets), len(e.serviceAccounts), 0} {
		out = binary.BigEndian.AppendUint32(out, uint32(number))
	}
	out = binary.BigEndian.AppendUint64(out, uint64(e.asOf.Unix()))
	var uids []byte
	for _, id := range e.secrets {
		uids = append(uids, id[:]...)
	}
	for _, id := range e.serviceAccounts {
		uids = append(uids, id[:]...)
	}
	sum := sha256.Sum256(append(slices.Clone(out), uids...))
	return append(append(out, sum[:]...), uids...), nil
}
