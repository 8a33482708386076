/** Name and version of the browser, as far as it tells: 'Firefox 153'. */
export function browserName(): string {
  const agent = navigator.userAgent;
  const found =
    /(Firefox|Edg|OPR|Chrome)\/(\d+)/.exec(agent) ??
    /(Version)\/([\d.]+).*Safari/.exec(agent) ??
    /(AppleWebKit)\/([\d.]+)/.exec(agent);
  if (!found) return 'a browser';
  const names: Record<string, string> = {
    Edg: 'Edge',
    OPR: 'Opera',
    Version: /Linux/.test(agent) ? 'WebKitGTK' : 'Safari',
    AppleWebKit: 'WebKit',
  };
  const edge = /(Edg|OPR)\/(\d+)/.exec(agent);
  const [, name, version] = edge ?? found;
  return `${names[name!] ?? name} ${version}`;
}
