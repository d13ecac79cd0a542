/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The base shares the CPUs among tasks and knows nothing else of them. A
 * follower follows one thing more of a task (its utilisation, its group, its
 * process's caches), and may know a better choice than the one that the base is
 * about to make. This file is all that the two know of each other: the base
 * calls the functions at the end of this file at the moments that `struct
 * perch_follower` names, and each follower fills in such a table. ../README.md
 * tells the order.
 */
#ifndef PERCH_HOOKS_H
#define PERCH_HOOKS_H

#include "base/host.h"

/* A follower's answer when a CPU is to take a task from a longer queue. */
enum perch_pull {
	PERCH_PULL_NOBODY, /* it moved no task, and leaves the choice to the others */
	PERCH_PULL_MOVED,  /* it moved a task */
	PERCH_PULL_KEEP,   /* the queue's tasks had better stay for now */
};

/*
 * Added to a queue's length by `turn_cpu`: that of no other is longer. More tasks than
 * any CPU has, and few enough for products with a capacity.
 */
#define PERCH_LONGEST 65536u

/*
 * The hooks of one follower. A hook that is null does not exist for it. `c` is
 * the state of `cpu`; every other CPU is named by its number. Unless a hook's
 * comment says otherwise, `cpu` is the CPU that runs the hook, and the kernel
 * holds its run-queue lock.
 */
struct perch_follower {
	/*
	 * In the thread of hotplug, without a lock: the CPU, which need not be the one that runs
	 * this, goes offline. No task of its run queue may stay in a queue of the follower's.
	 */
	void (*offline)(perch_u32 cpu);

	/*
	 * The scheduler is being loaded: the base calls the first once, and the
	 * second once for each CPU that may come online. A result other than 0
	 * is an error, which ends the load.
	 */
	int (*init)(void);
	int (*init_cpu)(perch_u32 cpu);

	/*
	 * A task is born, or was there when the scheduler was loaded. An error would
	 * fail the fork, so there is none: a follower that gets no memory for the task
	 * does without. The second hook: the task is gone.
	 */
	void (*init_task)(struct task_struct *p, struct scx_init_task_args *args);
	void (*exit_task)(struct task_struct *p);

	/*
	 * The task is this scheduler's from now on: it is newborn, was there when the scheduler was
	 * loaded, or comes from another class.
	 */
	void (*enable)(struct task_struct *p);

	/*
	 * The task becomes runnable, and `cpu` was chosen for it; it is in no queue yet. `cpu` need
	 * not be the CPU that runs the hook.
	 */
	void (*runnable)(struct task_struct *p, perch_u32 cpu, perch_u64 enq_flags);

	/* The task `p` on `cpu` begins `m`, a memory that was another task's. */
	void (*begin_memory)(struct perch_memory __arena *m, const struct task_struct *p,
			     perch_u32 cpu);

	/*
	 * A wake-up, or a task that the kernel wants queued. `bars`, true: the task must not run
	 * now, so no CPU is claimed for it. `hold`, true: it must not, and the follower keeps it
	 * until it may.
	 */
	bool (*bars)(struct task_struct *p);
	bool (*hold)(struct task_struct *p, perch_u64 enq_flags);

	/* True: the task counts as one of SCHED_IDLE, though its own policy is another. */
	bool (*sched_idle)(struct task_struct *p);

	/*
	 * A wake-up, before anything else is known of it. True: the wakee may have to go elsewhere
	 * though the CPU where it ran last idles, or the follower wants to hear of the policy's answer.
	 */
	bool (*draws)(const struct task_struct *p, const struct perch_memory __arena *m);

	/*
	 * A wake-up. `wakee`: the follower adds what it knows to the policy's view
	 * `t` of the wakee, whose memory is `m`. `asked`: the policy has answered
	 * once, for the last time or not. `chosen`: the waker's CPU has come to its
	 * choice. All of them run on the waker's CPU, without a run queue's lock.
	 */
	void (*wakee)(struct perch_task *t, struct task_struct *p,
		      const struct perch_memory __arena *m);
	void (*asked)(struct perch_host *h, const struct perch_task *t,
		      const struct perch_verdict *v, perch_u32 cpu);
	void (*chosen)(const struct perch_verdict *v, perch_u32 cpu);

	/*
	 * The kernel wants the task queued. True: the follower has put it
	 * somewhere, and no other follower is asked.
	 */
	bool (*enqueue)(struct task_struct *p, perch_u64 enq_flags);

	/* The virtual time with which the task enters the queue of `cpu`; `vtime` unless it differs. */
	perch_u64 (*stand)(struct task_struct *p, perch_u32 cpu, perch_u64 vtime,
			   perch_u64 enq_flags);

	/* The task starts to run. */
	void (*running)(struct task_struct *p, struct perch_cpu __arena *c, perch_u32 cpu);

	/*
	 * A tick of the kernel finds the task running; the task has run for
	 * `ran` ns since it was charged last.
	 */
	void (*tick)(struct task_struct *p, perch_u32 cpu, perch_u64 ran);

	/*
	 * The CPU chooses its next task, and `prev` ran until now (null if the
	 * CPU idled). True: `prev` may go on here, as `runs_on` says it could.
	 */
	bool (*dispatch)(struct task_struct *prev, perch_u32 cpu, bool runs_on);

	/* In the midst of dispatch: the task that ran until now is charged for `ran` ns. */
	void (*charged)(perch_u32 cpu, perch_u64 ran);

	/*
	 * The task stops. `left`: the base has charged it, and its virtual time is
	 * c->curr_vtime; a task that the real-time band runs has none. `stopping`:
	 * any task, which goes to sleep unless it is `runnable`.
	 */
	void (*left)(const struct perch_cpu __arena *c, perch_u32 cpu);
	void (*stopping)(struct task_struct *p, perch_u32 cpu, bool runnable, perch_u64 ran);

	/* The CPU has no task to run next. True: stay idle, do not steal. */
	bool (*idle)(perch_u32 cpu);

	/*
	 * The CPU is about to steal from the queue of `from`. True: the first task
	 * there that may run here had better stay.
	 */
	bool (*keeps)(perch_u32 cpu, perch_u32 from, perch_u64 now);

	/*
	 * The queue of `from` is too long for `cpu`, which had better take a task.
	 * `pull` may do so by pull_one(), which asks the same follower's `suits` of
	 * each task.
	 */
	enum perch_pull (*pull)(perch_u32 cpu, perch_u32 from);
	bool (*suits)(const struct task_struct *p, perch_u32 cpu, perch_u32 from);

	/*
	 * A turn of the timer, which holds no lock. `turn`: once in each; `now` is
	 * bpf_ktime_get_ns(). `turn_cpu`: the number of runnable tasks that
	 * balancing takes `cpu` to have, of which `nr` are in its run queue.
	 * `turn_llc`: an LLC's CPUs have this utilisation and so many runnable
	 * tasks in all.
	 */
	void (*turn)(perch_u64 now);
	perch_u32 (*turn_cpu)(struct perch_cpu __arena *c, perch_u32 nr, perch_u32 queued);
	void (*turn_llc)(perch_u32 number, perch_u32 util, perch_u32 nr, bool some_idle);
};

/* Each calls a hook of those followers that are on, in the order of followers.def. */
static __always_inline void follow_offline(perch_u32 cpu);
static __always_inline int follow_init(void);
static __always_inline int follow_init_cpu(perch_u32 cpu);
static __always_inline void follow_init_task(struct task_struct *p,
					     struct scx_init_task_args *args);
static __always_inline void follow_exit_task(struct task_struct *p);
static __always_inline void follow_enable(struct task_struct *p);
static __always_inline void follow_runnable(struct task_struct *p, perch_u32 cpu,
					    perch_u64 enq_flags);
static __always_inline void follow_begin_memory(struct perch_memory __arena *m,
						const struct task_struct *p, perch_u32 cpu);
static __always_inline bool follow_bars(struct task_struct *p);
static __always_inline bool follow_hold(struct task_struct *p, perch_u64 enq_flags);
static __always_inline bool follow_sched_idle(struct task_struct *p);
static __always_inline bool follow_draws(const struct task_struct *p,
					 const struct perch_memory __arena *m);
static __always_inline void follow_wakee(struct perch_task *t, struct task_struct *p,
					 const struct perch_memory __arena *m);
static __always_inline void follow_asked(struct perch_host *h, const struct perch_task *t,
					 const struct perch_verdict *v, perch_u32 cpu);
static __always_inline void follow_chosen(const struct perch_verdict *v, perch_u32 cpu);
static __always_inline bool follow_enqueue(struct task_struct *p, perch_u64 enq_flags);
static __always_inline perch_u64 follow_stand(struct task_struct *p, perch_u32 cpu, perch_u64 vtime,
					      perch_u64 enq_flags);
static __always_inline void follow_running(struct task_struct *p, struct perch_cpu __arena *c,
					   perch_u32 cpu);
static __always_inline void follow_tick(struct task_struct *p, perch_u32 cpu, perch_u64 ran);
static __always_inline bool follow_dispatch(struct task_struct *prev, perch_u32 cpu, bool runs_on);
static __always_inline void follow_charged(perch_u32 cpu, perch_u64 ran);
static __always_inline void follow_left(const struct perch_cpu __arena *c, perch_u32 cpu);
static __always_inline void follow_stopping(struct task_struct *p, perch_u32 cpu, bool runnable,
					    perch_u64 ran);
static __always_inline bool follow_idle(perch_u32 cpu);
static __always_inline bool follow_keeps(perch_u32 cpu, perch_u32 from, perch_u64 now);
static __always_inline enum perch_pull follow_pull(perch_u32 cpu, perch_u32 from);
static __always_inline void follow_turn(perch_u64 now);
static __always_inline perch_u32 follow_turn_cpu(struct perch_cpu __arena *c, perch_u32 nr);
static __always_inline void follow_turn_llc(perch_u32 number, perch_u32 util, perch_u32 nr,
					    bool some_idle);

/* Of the follower with this number (../follow/call.h); PERCH_NONE: any task suits. */
static __always_inline bool follow_suits(const struct task_struct *p, perch_u32 cpu, perch_u32 from,
					 perch_u32 who);

#endif
