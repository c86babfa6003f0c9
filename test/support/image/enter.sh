# Runs a program in a folder as if that were a container: sh enter.sh <root> <ro|rw> <program> [argument …]
#
# It needs a mount namespace of its own (unshare --mount --pid --fork). The programs of this machine, which take the place of the
# base image, are there and can't be changed. With `ro` nothing can be written but in /tmp and, if it is there, in <root>.volume,
# which becomes /var/lib/stockade.
set -e
root=$1
mode=$2
shift 2
mount --bind "$root" "$root"
for folder in usr bin sbin lib lib32 lib64 etc; do
  [ -e "/$folder" ] || continue
  mkdir -p "$root/$folder"
  mount --rbind "/$folder" "$root/$folder"
  mount -o remount,bind,ro "$root/$folder"
done
mkdir -p "$root/dev" "$root/proc" "$root/tmp" "$root/root/.npm"
mount --rbind /dev "$root/dev"
mount -t proc proc "$root/proc"
mount -t tmpfs tmpfs "$root/tmp"
if [ -n "$NPM_CACHE" ]; then mount --bind "$NPM_CACHE" "$root/root/.npm"; fi
if [ -d "$root.volume" ]; then mount --bind "$root.volume" "$root/var/lib/stockade"; fi
if [ "$mode" = ro ]; then mount -o remount,bind,ro "$root"; fi
exec /usr/sbin/chroot "$root" "$@"
