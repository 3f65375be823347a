# What is mounted, in the format of proc(5).
_pmfs_mounts() { cat /proc/self/mounts 2>/dev/null; }

# Offers the mount points of pmfs that begin with the word.
_pmfs_offer_mounts() { # WORD
  local place type
  while read -r _ place type _; do
    [ "$type" = fuse.pmfs ] || continue
    place=$(printf '%b' "$place") # blanks are \040
    case $place in "$1"*) COMPREPLY+=("$place") ;; esac
  done <<END
$(_pmfs_mounts)
END
}

# Offers what the other function describes.
_pmfs_offer() { # DESCRIPTION WORD
  local each line
  while IFS= read -r each; do
    line=
    case $each in
    '<mount>') _pmfs_offer_mounts "$2" ;;
    '<file>') line=$(compgen -f -- "$2") ;;
    '<directory>') line=$(compgen -d -- "$2") ;;
    '<command>') line=$(compgen -c -- "$2") ;;
    '<any>') ;;
    *) case $each in "$2"*) COMPREPLY+=("$each") ;; esac ;;
    esac
    case $each in '<mount>' | '<file>' | '<directory>') compopt -o filenames 2>/dev/null ;; esac
    [ -n "$line" ] || continue
    while IFS= read -r each; do COMPREPLY+=("$each"); done <<END
$line
END
  done <<END
$(printf '%s\n' "$1" | tr ' ' '\n')
END
}

_complete_pmfs() {
  local cur=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} command='' word value first='' i
  COMPREPLY=()
  # Readline takes --option=value for three words.
  if [ "$cur" = '=' ]; then
    cur=
  elif [ "$previous" = '=' ]; then
    previous=${COMP_WORDS[COMP_CWORD - 2]}
  fi
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=${COMP_WORDS[i]}
    if [ "$word" = -- ]; then
      first=$((i + 1))
      break
    elif [ "${COMP_WORDS[i + 1]}" = '=' ]; then
      i=$((i + 2))
    elif [ "${word#-}" != "$word" ]; then
      [ -z "$(_pmfs_value "$command $word")" ] || i=$((i + 1))
    elif [ -z "$command" ]; then
      command=$word
    elif [ -z "$first" ]; then
      first=$i
    fi
  done
  # The command of pmfs run has options and completions of its own.
  if [ "$command" = run ] && [ -n "$first" ] && [ "$COMP_CWORD" -gt "$first" ]; then
    ! declare -F _command_offset >/dev/null || _command_offset "$first"
    return
  fi
  value=$(_pmfs_value "$command $previous")
  if [ -n "$value" ]; then
    _pmfs_offer "$value" "$cur"
  elif [ -z "$command" ] || [ "${cur#-}" != "$cur" ]; then
    _pmfs_offer "$(_pmfs_words "$command")" "$cur"
  else
    _pmfs_offer "$(_pmfs_argument "$command")" "$cur"
  fi
}

complete -o default -F _complete_pmfs pmfs
