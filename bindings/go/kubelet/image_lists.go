package kubelet

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/klog/v2"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	"waybill.dev/go"
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

// imageLists lets the store judge what the runtime lists. Of several that need a list at the same time
// one makes it, and the others wait.
type imageLists struct {
	store        *waybill.Store
	imageService kubecontainer.ImageService
	observed     func(klog.Logger) // called after each list that the store took

	taken atomic.Uint64 // how many the store took

	mu    sync.Mutex // not held while the runtime is asked
	now   *imageList // under way; nil: none
	begun time.Time  // when the latest was begun
}

type imageList struct {
	over  chan struct{} // closed at its end
	taken bool          // by the store; read it after the end
}

// share waits for the list that is under way, or makes one unless the latest is too young. It returns
// whether the store took the list within callerWait.
func (l *imageLists) share(ctx context.Context) bool {
	l.mu.Lock()
	list := l.now
	if list == nil {
		if !l.begun.IsZero() && time.Since(l.begun) < betweenLists {
			l.mu.Unlock()
			return false
		}
		list = l.begin(ctx)
	}
	l.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, callerWait)
	defer cancel()
	return list.wait(ctx)
}

// count is the number of lists that the store took. nil, for other rules, has none.
func (l *imageLists) count() uint64 {
	if l == nil {
		return 0
	}
	return l.taken.Load()
}

// since says whether the store took a list after it had taken `count`: one that others made meanwhile,
// or one that this call makes or waits for.
func (l *imageLists) since(ctx context.Context, count uint64) bool {
	return l != nil && (l.taken.Load() != count || l.share(ctx))
}

// beforeFirstPull makes a list unless one was taken: what is on the node before any pull began was not
// brought by one.
func (l *imageLists) beforeFirstPull(ctx context.Context) {
	if l.taken.Load() == 0 {
		l.share(ctx)
	}
}

// listNow makes a list that begins now.
func (l *imageLists) listNow(ctx context.Context) {
	for {
		l.mu.Lock()
		other := l.now
		if other == nil {
			list := l.begin(ctx)
			l.mu.Unlock()
			list.wait(ctx)
			return
		}
		l.mu.Unlock()
		// Of two lists at once the store would refuse the one that began first.
		other.wait(ctx)
		if ctx.Err() != nil {
			return
		}
	}
}

// begin starts a list that goes on if ctx ends, since others may wait for it. l.mu is held.
func (l *imageLists) begin(ctx context.Context) *imageList {
	list := &imageList{over: make(chan struct{})}
	l.now, l.begun = list, time.Now()
	go func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), listTimeout)
		defer cancel()
		defer func() {
			l.mu.Lock()
			l.now = nil
			l.mu.Unlock()
			close(list.over)
		}()
		if list.taken = l.observe(ctx); list.taken {
			l.taken.Add(1)
		}
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
	token, err := l.store.BeginList()
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
	report, err := l.store.ObserveImages(waybill.ImageList{Images: ImagesOnNode(images), Token: &token, Complete: true})
	if err != nil {
		logger.Error(err, "failed to judge the images on the node")
		return false
	}
	for _, image := range report.Judged {
		logger.V(2).Info("judged an image that no record tells of", "image", image.Name, "imageRef", image.ImageRef, "preloaded", image.Preloaded, "because", image.Because)
	}
	if report.NotJudgedBecause != "" {
		logger.V(2).Info("no image was judged", "because", report.NotJudgedBecause)
	}
	l.observed(logger)
	return true
}
