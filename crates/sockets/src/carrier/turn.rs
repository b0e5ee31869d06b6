//! One turn of the loop: events of sockets and timers go to workloads, and their actions go to sockets.

use super::*;

impl Carrier {
    pub(super) fn turn(
        &mut self,
        until: Time,
        stop: &AtomicBool,
    ) -> Result<StopReason, SocketsError> {
        let mut news = Vec::with_capacity(NEWS);
        if !self.started {
            self.started = true;
            self.at = Time::ZERO;
        }
        self.settle();
        loop {
            if stop.load(Ordering::Relaxed) {
                return Ok(StopReason::Stopped);
            }
            let now = self.now();
            let mut behind = self.timers(now.min(until));
            if now >= until && !behind {
                return Ok(StopReason::Time);
            }
            if now >= self.next_sweep {
                self.at = now;
                self.next_sweep = now + SWEEP;
                self.sweep();
            }
            let idle = if behind || !self.ready.is_empty() {
                Dur::ZERO
            } else {
                let due = self.queue.next_at().unwrap_or(Time::MAX).min(until);
                due.since(self.now()).min(PATIENCE)
            };
            let timeout = Timespec {
                tv_sec: 0,
                tv_nsec: idle.as_nanos() as _,
            };
            news.clear();
            match epoll::wait(&self.epoll, spare_capacity(&mut news), Some(&timeout)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(SocketsError::Epoll(error)),
            }
            // Postponed work takes turns with new events.
            for _ in 0..self.ready.len() {
                if let Some(token) = self.ready.pop_front() {
                    self.catch_up(until, &mut behind);
                    self.go_on(token);
                    self.settle();
                }
            }
            for event in &news {
                self.catch_up(until, &mut behind);
                self.hear(event.data.u64(), event.flags);
                self.settle();
            }
        }
    }

    /// Runs due timers before an event of the current time is delivered. If the loop is late it runs none, because
    /// later timers may depend on that event.
    #[inline]
    fn catch_up(&mut self, until: Time, behind: &mut bool) {
        let now = self.now();
        if !*behind {
            *behind = self.timers(now.min(until));
        }
        self.at = now;
    }

    /// Delivers timers that are due by `until`. Returns true if some are left: because there are many, or because
    /// earlier ones may have caused events before them.
    fn timers(&mut self, until: Time) -> bool {
        let mut last = until;
        for n in 0..TIMERS {
            let Some((due, wake)) = self.queue.pop_until(last) else {
                break;
            };
            if n == 0 {
                last = until.min(due + SPAN);
            }
            // A timer is delivered with the instant it was set for, however late it is. The workload's next pause
            // starts from there, so rates do not drift with the lateness of wake-ups.
            self.at = due;
            match wake {
                Wake::Timer { worker, token } => {
                    self.lateness.add(self.now().since(due));
                    self.tell(worker, Event::Timer(token));
                    self.settle();
                }
                Wake::Reap(token) => {
                    self.reap(token);
                    self.settle();
                }
                Wake::Accept(token) => {
                    self.accept(token);
                    self.settle();
                }
            }
        }
        self.queue.next_at().is_some_and(|next| next <= until)
    }

    fn hear(&mut self, token: u64, flags: epoll::EventFlags) {
        if token & LISTENER != 0 {
            self.accept(token);
        } else if let Some((slot, end)) = self.slots.of(token) {
            match self.slots.peek(slot).kind {
                Kind::Tcp => self.tcp_news(slot, end, flags),
                Kind::Datagrams => self.datagram_news(slot, end),
                Kind::Free | Kind::Forgotten => {}
            }
        }
    }

    fn go_on(&mut self, token: u64) {
        if token & LISTENER != 0 {
            self.accept(token);
        } else if let Some((slot, end)) = self.slots.of(token) {
            match self.slots.peek(slot).kind {
                Kind::Tcp => self.tcp_goes_on(slot, end),
                Kind::Datagrams => self.datagram_news(slot, end),
                Kind::Free | Kind::Forgotten => {}
            }
        }
    }

    /// Queues an event for a workload.
    #[inline]
    pub(crate) fn post(&mut self, worker: u32, event: Event) {
        self.inbox.push_back((worker, event));
    }

    /// Delivers the queued events to the workloads.
    #[inline]
    fn settle(&mut self) {
        while let Some((worker, event)) = self.inbox.pop_front() {
            self.tell(worker, event);
        }
    }

    fn tell(&mut self, worker: u32, event: Event) {
        let mut actions = std::mem::take(&mut self.actions);
        let machine = &mut self.workers[worker as usize].machine;
        machine.handle(self.at, event, &mut actions);
        for action in actions.drain(..) {
            self.act(worker, &action);
        }
        self.actions = actions;
    }

    fn act(&mut self, worker: u32, action: &Action) {
        match *action {
            Action::Connect(conn, ref open) => self.connect(worker, conn, open),
            Action::Datagrams(conn, ref open) => self.open_datagrams(worker, conn, open),
            Action::Send(conn, end, n) => {
                if let Some(slot) = self.find(worker, conn, Kind::Tcp) {
                    self.send(slot, end, n);
                }
            }
            Action::SendDatagram(conn, end, n) => {
                if let Some(slot) = self.find(worker, conn, Kind::Datagrams) {
                    self.send_datagram(slot, end, n);
                }
            }
            Action::Close(conn, end) => {
                if let Some(slot) = self.find(worker, conn, Kind::Tcp) {
                    self.close(slot, end);
                }
            }
            Action::Abort(conn) => {
                if let Some(slot) = self.find(worker, conn, Kind::Tcp) {
                    self.abort(slot);
                } else if let Some(slot) = self.find(worker, conn, Kind::Datagrams) {
                    self.forget(slot);
                }
            }
            Action::Timer(pause, token) => {
                let wake = Wake::Timer { worker, token };
                self.queue.push(self.at + pause, wake);
            }
            Action::Ask(conn) => {
                let known = self.info(worker as usize, conn).unwrap_or_default();
                self.post(worker, Event::Info(conn, known));
            }
            Action::Unsent(conn, end) => {
                let slot = self.find(worker, conn, Kind::Tcp);
                let unsent = slot.map_or(0, |slot| self.unsent(slot, end));
                self.post(worker, Event::Unsent(conn, end, unsent));
            }
        }
    }

    pub(super) fn find(&self, worker: u32, conn: Conn, kind: Kind) -> Option<u32> {
        let slot = self.workers[worker as usize].open.get(conn)?;
        (self.slots.peek(slot).kind == kind).then_some(slot)
    }
}
