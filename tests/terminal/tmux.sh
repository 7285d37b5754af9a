#!/usr/bin/env bash
# The live view in a real terminal: tests/terminal/tmux.sh PATH_OF_REPRISE FOLDER_OF_TOOLS SOURCE_DIR
#
# A thousand items run in tmux, in a fresh window, and in one that is full and is made smaller and larger meanwhile. At the end tmux must show what
# the screen of our own tests shows, so that one can be trusted, and both must be clean. A picture that is drawn in the very moment in which tmux
# changes its size cannot know about it and may leave a trace; that is nobody's fault, so the second one has three tries.
set -u
reprise=$1 tools=$2 flow=$3/tests/terminal/many.yaml
work=$(mktemp -d)
tmux_() { tmux -L "reprise-$$" -f /dev/null "$@"; }
trap 'tmux_ kill-server 2>/dev/null; rm -rf "$work"' EXIT
unset TMUX
export LC_ALL=C.UTF-8

start() {  # what comes before it
  rm -rf "$work"/* "$work"/.reprise
  cat >"$work/in_tmux.sh" <<END
cd '$work'
'$tools/record_session' --through --out recording --set HOME='$work' -- sh -c '$1; exec "\$@"' sh '$reprise' run '$flow'
echo \$? >ended
exec sleep 600
END
  tmux_ new-session -d -s live -x 100 -y 30 "sh '$work/in_tmux.sh'" || exit 1
}

wait_for_items() {  # how many: until that many are done, as the window shows it
  local done_items
  until done_items=$(tmux_ capture-pane -p -t live | sed -n 's|.* \([0-9]*\)/1000 .*|\1|p' | tail -1) && [ "${done_items:-0}" -ge "$1" ]; do
    [ ! -e "$work/ended" ] || return 1
    sleep 0.01
  done
}

compare() {  # what the window shows at the end with the recording
  until [ -s "$work/ended" ]; do sleep 0.05; done
  tmux_ capture-pane -p -J -S - -t live | sed -e 's/ *$//' | sed -e :a -e '/^\n*$/{$d;N;ba' -e '}' >"$work/tmux_lines"
  tmux_ kill-session -t live
  [ "$(cat "$work/ended")" = 0 ] || { echo "exit code $(cat "$work/ended")"; return 1; }
  "$tools/replay_session" --first-line '^● many ' --never-stays '^○ then:|^  ↻ |retry (in|now)|█|░' "$work/recording" >"$work/our_lines" || return 1
  grep -q '^✔ work 990 of 1000 items, 10 failed' "$work/tmux_lines" || { echo "it did not end as it should"; return 1; }
  diff "$work/our_lines" "$work/tmux_lines"
}

fresh_window() {
  start true
  compare
}

pulled_window() {
  start 'seq 1 40'
  wait_for_items 300 && tmux_ resize-window -t live -x 60 -y 15
  wait_for_items 600 && tmux_ resize-window -t live -x 140 -y 40
  compare || return 1
  for size in 60x15 140x40; do
    grep -q "\"r\", \"$size\"" "$work/recording" || { echo "it was not told that it has $size"; return 1; }
  done
}

fresh_window || { echo "FAILED in a fresh window"; exit 1; }
for number in 1 2 3; do
  pulled_window && exit 0
  echo "try $number failed"
done
echo "FAILED in a window that changes its size"
exit 1
