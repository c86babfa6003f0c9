/** The certificate files that the URLs of the stores name. */
import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { TLS_FILES } from '../../redis/redis-address.ts';

/**
 * Why TLS can't use the files that these parameters of a URL name; `undefined` if it can. Node.js ignores authorities that it can't read,
 * and then blames the server's certificate. Its words for a wrong key name neither the key nor the file.
 */
export function faultOfFiles(text: string): string | undefined {
  const { searchParams } = new URL(text);
  const found: { certificate?: X509Certificate; key?: KeyObject } = {};
  for (const name of TLS_FILES) {
    const file = searchParams.get(name);
    if (file === null) continue;
    let content: string;
    try {
      content = readFileSync(file, 'utf8');
    } catch (error) {
      return `names a ${name} that can't be read: ${file} (${(error as NodeJS.ErrnoException).code})`;
    }
    if (name === 'sslkey') {
      const key = keyIn(content);
      if (!key)
        return `names a sslkey that has no private key in PEM, or one with a passphrase, which can't be used: ${file}`;
      found.key = key;
    } else {
      const certificate = certificateIn(content);
      if (!certificate) return `names a ${name} that has no certificate in PEM: ${file}`;
      if (name === 'sslcert') found.certificate = certificate;
    }
  }
  return faultOfPair(found);
}

function faultOfPair({ certificate, key }: { certificate?: X509Certificate; key?: KeyObject }) {
  if (certificate && !key) return 'names a sslcert, but no sslkey: name the private key of that certificate';
  if (key && !certificate) return 'names a sslkey, but no sslcert: name the certificate of that private key';
  return certificate && key && !certificate.checkPrivateKey(key)
    ? 'names a sslkey that does not belong to the certificate in sslcert: name the key that it was made with'
    : undefined;
}

/** The first certificate of a file that may have several. */
function certificateIn(content: string): X509Certificate | undefined {
  // This class also takes DER, which TLS does not.
  if (!content.includes('-----BEGIN ')) return undefined;
  try {
    return new X509Certificate(content);
  } catch {
    return undefined;
  }
}

function keyIn(content: string): KeyObject | undefined {
  try {
    return createPrivateKey(content);
  } catch {
    return undefined;
  }
}
