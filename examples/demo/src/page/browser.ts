/** Name and version of the browser, as far as it tells: 'Firefox 153'. */
export function browserName(): string {
  const agent = navigator.userAgent;
  const found =
    /(Edg|OPR)\/(\d+)/.exec(agent) ?? // they name Chrome, too
    /(Firefox|Chrome)\/(\d+)/.exec(agent) ??
    /(Version)\/([\d.]+).*Safari/.exec(agent) ??
    /(AppleWebKit)\/([\d.]+)/.exec(agent);
  if (!found) return 'a browser';
  const names: Record<string, string> = {
    Edg: 'Edge',
    OPR: 'Opera',
    Version: /Linux/.test(agent) ? 'WebKitGTK' : 'Safari',
    AppleWebKit: 'WebKit',
  };
  const [, name, version] = found;
  return `${names[name!] ?? name} ${version}`;
}
