package waybill

// #include "shim.h"
import "C"

import (
	"time"
	"unsafe"
)

// AgeLimits says how long what a pull proved counts. Past it a match is "pull", [ReasonProofTooOld],
// until a pull proves the credential again; a credential of unknown proof is past every limit. 0: for
// ever; otherwise 1 minute to 10 years. Parts of a second count as a whole one. Age is measured by the
// clock, or by the newest commit's time if the clock is behind that.
type AgeLimits struct {
	Credentials time.Duration // Secrets and service accounts
	// A shorter one for service accounts, whose tokens live an hour. 0: as Credentials.
	ServiceAccounts time.Duration
	NodePods        time.Duration // of images that were pulled without credentials
	// How long a revocation is kept at least: 1 day to 10 years; 0: 30 days. It is also kept as long as
	// an older backup lies in backup/, a pull that began before is open, or records are to be tidied up.
	Revocations time.Duration
}

// cAges keeps nil apart: what the store remembers.
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

// Proof says when a credential was last proven by a pull. A match proves nothing: what is written back
// because it matched has the proof of what it matched.
type Proof struct {
	Proven    time.Time // whole seconds; zero: unknown
	PullBegan uint64    // the commit in which that pull began; 0: unknown
}

// CredentialProofs are the proofs of one [ImagePullCredentials].
type CredentialProofs struct {
	NodePods        Proof   // of NodePodsAccessible
	Secrets         []Proof // one for each of KubernetesSecrets, in the same order
	ServiceAccounts []Proof // likewise
}

// CredentialName has the coordinates of a Secret or a service account.
type CredentialName struct {
	Namespace, Name string
	UID             string // empty: whatever the UID
}

// ForgetReport says what a call to forget took out of records.
type ForgetReport struct {
	Records         uint64 // that lost something
	Secrets         uint64 // under an image name of a record each; likewise below
	ServiceAccounts uint64
	NodePods        uint64 // image names that were open to all pods of the node
	// Secrets elsewhere with the hash of a forgotten one. They still open what they opened:
	// [Store.ForgetCredential] refuses the credentials themselves.
	EqualHashes uint64
	Stored      bool // false: a truth by which nothing was gone
	// Of Records, those that still have what does not count any more; it is taken out later
	// ([Store.TidyUp]).
	Untidied uint64
}

// ForgetSecret forgets a Secret, under every image name, at once: for every decision that begins after
// it returned, and after a crash. The records stay, so the images must be verified again. What was
// forgotten does not come back by a pull that began before ([Store.RecordPullIntent]; one whose
// beginning is not on record counts as such), a match that is written back, an import or a restored
// backup. A pull that begins later proves anew. Another Secret with the same credentials still opens
// what it opened (ForgetReport.EqualHashes). It is remembered also if nothing in the store has it.
//
// ErrInvalidArgument: the namespace or the name is empty. Further errors as of
// [Store.RecordPullIntent].
func (s *Store) ForgetSecret(who CredentialName, options ...ChangeOption) (ForgetReport, error) {
	return s.forget(options, func(h handle, how *C.waybill_change_options, report **C.waybill_forget_report, e errorOut) C.waybill_code {
		return C.waybill_forget_secret(h, borrowName(&who), how, report, e)
	})
}

// ForgetServiceAccount is [Store.ForgetSecret] for a service account.
func (s *Store) ForgetServiceAccount(who CredentialName, options ...ChangeOption) (ForgetReport, error) {
	return s.forget(options, func(h handle, how *C.waybill_change_options, report **C.waybill_forget_report, e errorOut) C.waybill_code {
		return C.waybill_forget_service_account(h, borrowName(&who), how, report, e)
	})
}

// ForgetNamespace forgets every Secret and service account of the namespace, as [Store.ForgetSecret]
// does.
func (s *Store) ForgetNamespace(namespace string, options ...ChangeOption) (ForgetReport, error) {
	return s.forget(options, func(h handle, how *C.waybill_change_options, report **C.waybill_forget_report, e errorOut) C.waybill_code {
		return C.waybill_forget_namespace(h, borrow(namespace), how, report, e)
	})
}

// ForgetImage forgets every credential of one handler's copy of the image, and that every pod may use
// it; RulesClosed by any spelling. It ignores copy.Image. Ledger entries stay
// ([Store.RemoveFromLedger]). Otherwise as [Store.ForgetSecret]; ErrInvalidArgument: the ref is empty.
func (s *Store) ForgetImage(copy ImageCopy, options ...ChangeOption) (ForgetReport, error) {
	return s.forget(options, func(h handle, how *C.waybill_change_options, report **C.waybill_forget_report, e errorOut) C.waybill_code {
		return C.waybill_forget_image(h, borrowCopy(&copy), how, report, e)
	})
}

// ForgetCredential forgets every Secret with this hash ([HashCredentials]), whoever's it is. One that is
// rotated to it later opens nothing by its coordinates either, until a pull proves the hash. Otherwise as
// [Store.ForgetSecret]; ErrInvalidArgument: the hash is empty.
func (s *Store) ForgetCredential(hash string, options ...ChangeOption) (ForgetReport, error) {
	return s.forget(options, func(h handle, how *C.waybill_change_options, report **C.waybill_forget_report, e errorOut) C.waybill_code {
		return C.waybill_forget_credential(h, borrow(hash), how, report, e)
	})
}

func (s *Store) forget(options []ChangeOption, call func(h handle, how *C.waybill_change_options, report **C.waybill_forget_report, e errorOut) C.waybill_code) (ForgetReport, error) {
	var a arena
	defer a.free()
	how := cChangeOptions(&a, options)
	var report *C.waybill_forget_report
	err := s.call(func(h handle, e errorOut) C.waybill_code { return call(h, how, &report, e) })
	return take(report, goForgetReport), err
}

// ExistingCredentials are the Secrets and service accounts that exist in the cluster, all of them; at
// most 1,000,000. Without a UID, one of any UID exists. A part of them, such as those of one node's
// pods, is no truth: what it leaves out is forgotten.
type ExistingCredentials struct {
	Secrets         []CredentialName
	ServiceAccounts []CredentialName
}

// ReconcileReport says what a truth did.
type ReconcileReport struct {
	Forgotten ForgetReport
	Known     uint64 // Secrets and service accounts in records that exist
	Gone      uint64 // that do not
	Newer     uint64 // that do not, but were proven after the token: they stay
}

// Reconcile forgets what is in records, is not in truth, and was proven by pulls that began before
// token was drawn ([Store.BeginList]). truth was listed after that. Of a pull that began before and
// ends later no Secret or service account is recorded: it may have been made with one that is gone, so
// the next pod proves its own.
//
// ErrInvalidArgument: a namespace or name is empty; the token is from the future, of another store, or
// older than that of the last truth; truth is empty although records mention credentials ([AllowEmpty]).
// ErrLimitExceeded: more than 1,000,000. Further errors as of [Store.RecordPullIntent].
func (s *Store) Reconcile(truth ExistingCredentials, token ListToken, options ...ChangeOption) (ReconcileReport, error) {
	var a arena
	defer a.free()
	c := one[C.waybill_existing_credentials](&a)
	c.struct_size = C.size_t(unsafe.Sizeof(*c))
	c.secrets, c.secret_count = cList(&a, truth.Secrets, cName)
	c.service_accounts, c.service_account_count = cList(&a, truth.ServiceAccounts, cName)
	how := cChangeOptions(&a, options)
	var report *C.waybill_reconcile_report
	err := s.call(func(h handle, e errorOut) C.waybill_code {
		return C.waybill_reconcile(h, c, cToken(token), how, &report, e)
	})
	return take(report, func(r *C.waybill_reconcile_report) ReconcileReport {
		return ReconcileReport{
			Forgotten: goForgetReport(r.forgotten),
			Known:     uint64(r.known),
			Gone:      uint64(r.gone),
			Newer:     uint64(r.newer),
		}
	}), err
}

// TidyUp waits until what was forgotten is taken out of all records, for a process that ends. Of very
// many records that is done later, on a thread of the library; it does not count any more in any case.
// The error of a batch that failed: the rest is done by the next call, or by the next owner.
// ErrNotOwner.
func (s *Store) TidyUp() error {
	return s.call(func(h handle, e errorOut) C.waybill_code { return C.waybill_tidy_up(h, e) })
}

// RevocationKind says what a [Revocation] is about.
type RevocationKind int32

const (
	RevokedSecret         RevocationKind = C.WAYBILL_REVOKED_SECRET
	RevokedServiceAccount RevocationKind = C.WAYBILL_REVOKED_SERVICE_ACCOUNT
	// RevokedNamespace: every Secret and service account of it.
	RevokedNamespace RevocationKind = C.WAYBILL_REVOKED_NAMESPACE
	// RevokedImage: every credential of one handler's copy, and that all pods may use it.
	RevokedImage RevocationKind = C.WAYBILL_REVOKED_IMAGE
	// RevokedCredential: every Secret that held these credentials, by their hash.
	RevokedCredential RevocationKind = C.WAYBILL_REVOKED_CREDENTIAL
)

// String returns "secret", "serviceAccount", "namespace", "image" or "credential".
func (k RevocationKind) String() string {
	return nameOr(C.waybill_revocation_kind_name(C.int32_t(k)), "RevocationKind", int64(k))
}

// Revocation is what was forgotten: what pulls proved that began in Commit or before.
type Revocation struct {
	Kind           RevocationKind
	Who            CredentialName // of a namespace: its Namespace
	ImageRef       string         // this and the next: of an image
	RuntimeHandler string         // empty: the default one
	CredentialHash string         // of a credential
	Commit         uint64
	Since          time.Time
	Untidied       bool // records still have some, which do not count any more
}

// ListRevocations returns those that are kept ([AgeLimits]), unordered. Errors as of
// [Store.GetRecord].
func (s *Store) ListRevocations() ([]Revocation, error) {
	var revocations *C.waybill_revocations
	err := s.call(func(h handle, e errorOut) C.waybill_code { return C.waybill_list_revocations(h, &revocations, e) })
	return take(revocations, func(r *C.waybill_revocations) []Revocation {
		return goList(r.items, r.count, func(r *C.waybill_revocation) Revocation {
			return Revocation{
				Kind:           RevocationKind(r.kind),
				Who:            goCredentialName(&r.who),
				ImageRef:       goString(r.image_ref),
				RuntimeHandler: goString(r.runtime_handler),
				CredentialHash: goString(r.credential_hash),
				Commit:         uint64(r.commit),
				Since:          goTime(r.since),
				Untidied:       bool(r.untidied),
			}
		})
	}), err
}

func borrowName(n *CredentialName) C.waybill_credential_name {
	return C.waybill_credential_name{
		namespace_name: borrow(n.Namespace),
		name:           borrow(n.Name),
		uid:            borrow(n.UID),
	}
}

func cName(a *arena, n *CredentialName) C.waybill_credential_name {
	return C.waybill_credential_name{
		namespace_name: a.string(n.Namespace),
		name:           a.string(n.Name),
		uid:            a.string(n.UID),
	}
}

func goCredentialName(n *C.waybill_credential_name) CredentialName {
	return CredentialName{
		Namespace: goString(n.namespace_name),
		Name:      goString(n.name),
		UID:       goString(n.uid),
	}
}

func goForgetReport(r *C.waybill_forget_report) ForgetReport {
	return ForgetReport{
		Records:         uint64(r.records),
		Secrets:         uint64(r.secrets),
		ServiceAccounts: uint64(r.service_accounts),
		NodePods:        uint64(r.node_pods),
		EqualHashes:     uint64(r.equal_hashes),
		Stored:          bool(r.stored),
		Untidied:        uint64(r.untidied),
	}
}

func goProof(p *C.waybill_proof) Proof {
	return Proof{Proven: goTimeOrZero(p.proven), PullBegan: uint64(p.pull_began)}
}

func goProvenRecord(r *C.waybill_proven_record) ImagePulledRecord {
	record := goRecord(&r.record)
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
