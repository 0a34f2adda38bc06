package waybill

// #include "shim.h"
import "C"

import (
	"time"
	"unsafe"
)

// AgeLimits says how long a proof counts. Past the limit a matching credential gives "pull",
// [ReasonProofTooOld], until a pull proves it again; a credential whose time of proof is unknown is
// past every limit. 0: for ever; otherwise 1 minute to 10 years. Parts of a second count as a whole
// one. Age is measured by the clock, or by the newest commit's time if the clock is behind that.
type AgeLimits struct {
	Credentials time.Duration // Secrets and service accounts
	// A shorter one for service accounts, whose tokens live an hour. 0: as Credentials.
	ServiceAccounts time.Duration
	NodePods        time.Duration // for images that were pulled without credentials
	// How long a revocation is kept at least: 1 day to 10 years; 0: 30 days. It is kept longer while
	// backup/ holds an older backup, a pull that began before it is open, or records are still to be
	// tidied up.
	Revocations time.Duration
}

// cAges keeps nil, which stands for what the store remembers.
func cAges(a *arena, l *AgeLimits) *C.waybill_age_limits {
	if l == nil {
		return nil
	}
	c := one[C.waybill_age_limits](a)
	c.struct_size = C.size_t(unsafe.Sizeof(*c))
	c.credentials_seconds = wholeSeconds(l.Credentials)
	c.service_accounts_seconds = wholeSeconds(l.ServiceAccounts)
	c.node_pods_seconds = wholeSeconds(l.NodePods)
	c.revocations_seconds = wholeSeconds(l.Revocations)
	return c
}

// CredentialProofs are the proofs of one [ImagePullCredentials].
type CredentialProofs struct {
	NodePods        Proof   // of NodePodsAccessible
	Secrets         []Proof // one for each of KubernetesSecrets, in the same order
	ServiceAccounts []Proof // likewise
}

func (s *Store) forget(options []ChangeOption, call func(h handle, how *C.waybill_change_options, report **C.waybill_forget_report, e errorOut) C.waybill_code) (ForgetReport, error) {
	var a arena
	defer a.free()
	how := cChangeOptions(&a, options)
	var report *C.waybill_forget_report
	err := s.call(func(h handle, e errorOut) C.waybill_code { return call(h, how, &report, e) })
	return take(report, goForgetReport), err
}

func borrowName(n *CredentialName) C.waybill_credential_name {
	return C.waybill_credential_name{
		namespace_name: borrow(n.Namespace),
		name:           borrow(n.Name),
		uid:            borrow(n.UID),
	}
}

func goProvenRecord(r *C.waybill_proven_record) ImagePulledRecord {
	record := goImagePulledRecord(&r.record)
	if n := int(r.record.credential_mapping_count); n > 0 {
		entries, proofs := unsafe.Slice(r.record.credential_mapping, n), unsafe.Slice(r.proofs, n)
		record.Proofs = make(map[string]CredentialProofs, n)
		for i := range entries {
			credentials, of := &entries[i].credentials, &proofs[i]
			record.Proofs[goString(entries[i].image_name)] = CredentialProofs{
				NodePods:        goProof(&of.node_pods),
				Secrets:         goList(of.secrets, credentials.secret_count, goProof),
				ServiceAccounts: goList(of.service_accounts, credentials.service_account_count, goProof),
			}
		}
	}
	return record
}
