package kubelet

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/klog/v2"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	"waybill.dev/go"
	"waybill.dev/go/store"
)

const (
	// Between two lists that decisions and pulls ask for.
	betweenLists = time.Second
	// The runtime has this long for a list. The kubelet's own requests to it end earlier.
	listTimeout = 2 * time.Minute
	// Decisions and pulls wait this long for the runtime. Their caller may hold a lock that the image
	// service needs.
	callerWait = 10 * time.Second
)

// imageLists lets the store judge what the runtime lists. If several goroutines need a list at the
// same time, one makes it, and the others wait.
type imageLists struct {
	store        *store.Store
	imageService kubecontainer.ImageService
	files        *closedFiles
	metrics      *kubeletMetrics

	taken atomic.Pointer[imageList] // the latest that the store took

	mu    sync.Mutex // not held while the runtime is asked
	now   *imageList // under way, or waiting for its turn; nil: none
	begun time.Time  // when the latest was begun, or will be
}

type imageList struct {
	over  chan struct{} // closed at its end; what follows may be read then
	begun time.Time
	taken bool // by the store
}

// latest is nil if the store took no list, and for a nil imageLists, which other rules have.
func (l *imageLists) latest() *imageList {
	if l == nil {
		return nil
	}
	return l.taken.Load()
}

// next returns a list that the store took after it had taken `seen`: the latest, or else the one that is
// under way, or else one that waits until its turn comes, betweenLists after the latest. Nil: there is
// none within callerWait.
func (l *imageLists) next(ctx context.Context, seen *imageList) *imageList {
	l.mu.Lock()
	if latest := l.latest(); latest != seen {
		l.mu.Unlock()
		return latest
	}
	list := l.now
	if list == nil {
		list = l.begin(ctx, max(0, betweenLists-time.Since(l.begun)))
	}
	l.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, callerWait)
	defer cancel()
	if !list.wait(ctx) {
		return nil
	}
	return list
}

// judge asks `unknown` again after lists that may have the image: at most twice, since a list that
// was under way may have begun before the image came.
func (l *imageLists) judge(ctx context.Context, seen *imageList, unknown func() bool) {
	asked := time.Now()
	for range 2 {
		if seen = l.next(ctx, seen); seen == nil || !unknown() || !seen.begun.Before(asked) {
			return
		}
	}
}

// beforeFirstPull makes a list unless one was taken: no pull brought the images that were on the
// node before any pull began. It waits for no turn.
func (l *imageLists) beforeFirstPull(ctx context.Context) {
	l.mu.Lock()
	waits := l.now == nil && !l.begun.IsZero() && time.Since(l.begun) < betweenLists
	l.mu.Unlock()
	if !waits && l.latest() == nil {
		l.next(ctx, nil)
	}
}

// listNow makes a list that begins now.
func (l *imageLists) listNow(ctx context.Context) {
	for {
		l.mu.Lock()
		other := l.now
		if other == nil {
			list := l.begin(ctx, 0)
			l.mu.Unlock()
			list.wait(ctx)
			return
		}
		l.mu.Unlock()
		// If two lists ran at once, the store would refuse the one that began first.
		other.wait(ctx)
		if ctx.Err() != nil {
			return
		}
	}
}

// begin starts a list, after a pause, that goes on if ctx ends, since others may wait for it. l.mu is
// held.
func (l *imageLists) begin(ctx context.Context, pause time.Duration) *imageList {
	list := &imageList{over: make(chan struct{})}
	l.now, l.begun = list, time.Now().Add(pause)
	go func() {
		time.Sleep(pause)
		list.begun = time.Now()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), listTimeout)
		defer cancel()
		list.taken = l.observe(ctx)
		l.mu.Lock()
		defer l.mu.Unlock()
		if list.taken {
			l.taken.Store(list)
		}
		l.now = nil
		close(list.over)
	}()
	return list
}

func (i *imageList) wait(ctx context.Context) bool {
	select {
	case <-i.over:
		return i.taken
	case <-ctx.Done():
		return false
	}
}

// observe changes nothing if the runtime does not answer, or lists nothing: a runtime that starts up
// lists nothing either.
func (l *imageLists) observe(ctx context.Context) bool {
	logger := klog.FromContext(ctx)
	list, err := l.store.BeginList(ctx)
	if err != nil {
		logger.Error(err, "failed to begin a list of images, no image is judged")
		return false
	}
	images, err := l.imageService.ListImages(ctx)
	if err != nil {
		logger.Error(err, "failed to list images, no image is judged and no ImagePulledRecord is pruned")
		return false
	}
	if len(images) == 0 {
		logger.Info("the runtime lists no images, none is judged and no ImagePulledRecord is pruned")
		return false
	}
	onNode := ImagesOnNode(images)
	report, err := l.store.ClassifyImages(ctx, waybill.ClassifyImages{Images: onNode, Token: list.Token, Complete: true})
	if err != nil {
		logger.Error(err, "failed to judge the images on the node")
		return false
	}
	logClassified(logger, report)
	l.files.putRight(logger, onNode)
	l.metrics.note(logger, l.store)
	return true
}
