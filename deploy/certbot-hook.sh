#!/bin/sh
# Gives certbot's certificate to the service medfeed, after each renewal. As root:
#
#   install -m 755 deploy/certbot-hook.sh /etc/letsencrypt/renewal-hooks/deploy/medfeed
#   certbot certonly --standalone -d feed.example.org
#   RENEWED_LINEAGE=/etc/letsencrypt/live/feed.example.org /etc/letsencrypt/renewal-hooks/deploy/medfeed
#
# In /etc/medfeed.env:
#
#   MEDFEED_TLS_CERT=/etc/medfeed/chain.pem
#   MEDFEED_TLS_KEY=/etc/medfeed/key.pem
#   MEDFEED_PUBLIC_URL=https://feed.example.org
#
# Then let the socket listen on port 443, as medfeed.socket explains, and restart both:
#
#   systemctl edit medfeed.socket
#   systemctl stop medfeed.service medfeed.socket
#   systemctl start medfeed.socket medfeed.service
#
# Certbot runs it for every certificate of the machine: with several, add `[ "$RENEWED_LINEAGE" = ... ] || exit 0` below.
set -e
folder=/etc/medfeed
install -d -m 750 -o root -g medfeed "$folder"
# The server loads a pair once both files are there. Until then it keeps the old one.
install -m 640 -o root -g medfeed "$RENEWED_LINEAGE/fullchain.pem" "$folder/chain.pem"
install -m 640 -o root -g medfeed "$RENEWED_LINEAGE/privkey.pem" "$folder/key.pem"
systemctl try-reload-or-restart medfeed.service
