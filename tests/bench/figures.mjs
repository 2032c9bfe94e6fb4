// What a list of latencies (ms) comes to.
export function figures(latencies) {
  const sorted = [...latencies].sort((a, b) => a - b);
  const part = (p) => Number(sorted[Math.min(sorted.length - 1, Math.floor(p * sorted.length))].toFixed(2));
  return { n: sorted.length, p50: part(0.5), p90: part(0.9), p99: part(0.99) };
}
